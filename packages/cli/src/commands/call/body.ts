/** The body of the response, on standard output or in a file. */
import * as FileSystem from "@effect/platform/FileSystem"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { outputError } from "../../CommandError.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { indent } from "./json.js"

/** Prints the body as it arrives. On a terminal, indents JSON, ends the last line, and shows only text. */
export const printBody = (response: HttpClientResponse, isTerminal: boolean) => {
  if (!isTerminal) {
    return Stream.runForEach(response.stream, (chunk) => output.write("stdout", chunk))
  }
  const contentType = response.headers["content-type"] ?? ""
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
  const text = Stream.decodeText(response.stream, encodingOf(contentType))
  let last = "\n"
  return Stream.runForEach(
    isJson ? Stream.map(Stream.fromEffect(Stream.mkString(text)), indent) : text,
    (part) => {
      if (!isJson && /[\0\ufffd]/.test(part)) return notText
      last = part.at(-1) ?? last
      return output.write("stdout", output.visible(part))
    }
  ).pipe(
    Effect.ensuring(
      Effect.suspend(() =>
        last === "\n" ? Effect.void : Effect.ignore(output.write("stdout", "\n"))
      )
    )
  )
}

const notText = outputError(
  "The body is not text, and a terminal cannot show it. Use --output FILE, or a pipe."
)

/** An unknown charset counts as UTF-8. */
const encodingOf = (contentType: string): string => {
  const [, charset] = /;\s*charset="?([\w-]+)/i.exec(contentType) ?? []
  return Either.getOrElse(Either.try(() => new TextDecoder(charset).encoding), () => "utf-8")
}

export const saveBody = (response: HttpClientResponse, file: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const sink = Sink.mapError(
      fs.sink(pathOf(file)),
      () => outputError(`Cannot write ${file}, the file of --output.`)
    )
    yield* Stream.run(response.stream, sink)
  })
