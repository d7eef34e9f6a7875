/** `store-api call`: an authorized request. Standard input and the response are streamed. */
import { STATUS_CODES } from "node:http"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpClient from "@effect/platform/HttpClient"
import { type HttpClientError, isHttpClientError } from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpMethod from "@effect/platform/HttpMethod"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import * as AuthorizedHttpClient from "@store-api/core/AuthorizedHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Ref from "effect/Ref"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { configuration, type Fault, httpError, noResponse, status, systemCode, unwritable, usage } from "../Fault.js"
import { type call, timeOf, type Values } from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import { make as makeProvider, nameOf, originOf, redirectRemedy } from "../provider.js"
import { read, type Settings } from "../settings.js"

type Given = Values<typeof call>

export const run = (given: Given, path: string) =>
  Effect.gen(function*() {
    const request = yield* requestOf(given, path)
    const duration = given.timeout === undefined ? Duration.infinity : yield* timeOf("--timeout", given.timeout)
    const settings = yield* read(given, "required")
    yield* Effect.timeoutFail(Effect.scoped(execute(given, settings, request)), {
      duration,
      onTimeout: () => noResponse(`The call took longer than ${given.timeout ?? ""}, the time of --timeout.`)
    })
  })

const execute = (given: Given, settings: Settings, request: HttpClientRequest.HttpClientRequest) =>
  Effect.gen(function*() {
    const { http, provider } = yield* makeProvider(settings, given)
    const rejections = yield* Ref.make(0)
    const client = yield* AuthorizedHttpClient.make({ ...settings, apiUrl: settings.apiUrl ?? "" }).pipe(
      Effect.provideService(AccessTokenProvider, {
        ...provider,
        invalidate: (token) => Effect.zipRight(Ref.update(rejections, (count) => count + 1), provider.invalidate(token))
      }),
      Effect.updateService(
        HttpClient.HttpClient,
        HttpClient.transform((send, request) => output.whileWaiting(nameOf(request), send))
      ),
      Effect.provide(http)
    )
    const response = yield* client.execute(request)
    const isTerminal = (yield* Host).process.stdout.isTTY === true
    if (given.include) yield* output.write("stdout", isTerminal ? output.visible(head(response)) : head(response))
    const hasOwn = given.header.some((header) => /^authorization:/i.test(header))
    const why = response.status === 401 && !hasOwn
      ? whyRejected(yield* Ref.get(rejections), settings)
      : ""
    // 304 answers a condition of the caller's own header.
    const isError = response.status >= 300 && response.status !== 304
    const target = originOf(response.headers["location"], settings.apiUrl)
    const end = response.status >= 400 || target === undefined
      ? `.${why}`
      : ` to ${target}. ${redirectRemedy(settings, response)}`
    const problem = `HTTP ${statusLine(response)}${end}`
    const file = given.output ?? "-"
    const written = file === "-" ? printBody(response, isTerminal) : saveBody(response, file)
    yield* Effect.tapError(written, () => isError ? output.problem(problem) : Effect.void)
    if (isError) return yield* (given.fail ? status : httpError)(problem)
  }).pipe(Effect.mapError((error) => {
    if (error._tag === "Fault") return error
    return isHttpClientError(error) ? noResponse(whyNoResponse(error, settings)) : settings.explain(error)
  }))

const requestOf = (given: Given, path: string) =>
  Effect.gen(function*() {
    const method = given.method?.toUpperCase() ?? (given.data === undefined ? "GET" : "POST")
    if (!HttpMethod.isHttpMethod(method)) {
      return yield* usage(`--method must be one of ${[...HttpMethod.all].join(", ")}.`)
    }
    const headers = yield* Effect.forEach(given.header, headerOf)
    const request = HttpClientRequest.make(method)(yield* checkedPath(path))
    return HttpClientRequest.setHeaders(yield* withBody(given, request), headers)
  })

/** A fragment is never sent (RFC 9110 §7.1), so it is a mistake. */
export const checkedPath = (path: string): Effect.Effect<string, Fault> =>
  path.includes("#")
    ? usage("The path must not contain a #, because a fragment is not sent. In a path, write %23.")
    : Effect.succeed(path)

const headerOf = (text: string): Effect.Effect<readonly [string, string], Fault> => {
  const [, name, value] = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e]*)$/.exec(text) ?? []
  return name === undefined || value === undefined
    ? usage("A --header must be a name, a colon and a value in ASCII, such as \"Accept: text/csv\".")
    : Effect.succeed([name, value])
}

/** Adds the body, as JSON unless a header says otherwise. Streams standard input, so only once. */
const withBody = ({ data, ...given }: Given, request: HttpClientRequest.HttpClientRequest) =>
  Effect.gen(function*() {
    const contentType = "application/json"
    const { pathOf, process } = yield* Host
    if (data === undefined) return request
    if (data === "-" || data === "@-") {
      if (given["secret-file"] === "-") return yield* usage("Standard input cannot hold both the secret and the body.")
      const stdin = NodeStream.fromReadable<Fault>(() => process.stdin, () => usage("Cannot read standard input."))
      return HttpClientRequest.bodyStream(request, stdin, { contentType })
    }
    if (!data.startsWith("@")) return HttpClientRequest.bodyText(request, data, contentType)
    const file = data.slice(1)
    const fs = yield* FileSystem.FileSystem
    const problem = configuration(`Cannot read ${file}, the file of --data.`)
    const bytes = yield* Effect.mapError(fs.readFile(pathOf(file)), () => problem)
    return HttpClientRequest.bodyUint8Array(request, bytes, contentType)
  })

const statusLine = ({ status }: HttpClientResponse.HttpClientResponse): string =>
  `${status} ${STATUS_CODES[status] ?? ""}`.trimEnd()

/** Explains a final 401 by the number of tokens that were rejected in this run, of which there are at most two. */
const whyRejected = (rejections: number, { nameOf }: Settings): string => {
  const addresses = `${nameOf("apiUrl")} and ${nameOf("authUrl")}`
  return [
    " The API says that another token would not help, because the client may not do this.",
    " A body from standard input can be sent only once, so the next run acquires another token.",
    ` A new token was rejected too: check that ${addresses} belong to the same environment.`
  ][rejections] ?? ""
}

const head = (response: HttpClientResponse.HttpClientResponse): string => {
  const lines = Object.entries(response.headers).map(([name, value]) => `${name}: ${value}\n`)
  return `HTTP/1.1 ${statusLine(response)}\n${lines.join("")}\n`
}

/** Prints the body as it arrives. On a terminal, indents JSON, ends the last line, and shows only text. */
const printBody = (response: HttpClientResponse.HttpClientResponse, isTerminal: boolean) => {
  if (!isTerminal) return Stream.runForEach(response.stream, (chunk) => output.write("stdout", chunk))
  const contentType = response.headers["content-type"] ?? ""
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
  const text = Stream.decodeText(response.stream, encodingOf(contentType))
  let last = "\n"
  return Stream.runForEach(isJson ? Stream.map(Stream.fromEffect(Stream.mkString(text)), indent) : text, (part) => {
    if (!isJson && /[\0\ufffd]/.test(part)) return notText
    last = part.at(-1) ?? last
    return output.write("stdout", output.visible(part))
  }).pipe(
    Effect.ensuring(Effect.suspend(() => last === "\n" ? Effect.void : Effect.ignore(output.write("stdout", "\n"))))
  )
}

const notText = unwritable("The body is not text, and a terminal cannot show it. Use --output FILE, or a pipe.")

/** An unknown charset counts as UTF-8. */
const encodingOf = (contentType: string): string => {
  const [, charset] = /;\s*charset="?([\w-]+)/i.exec(contentType) ?? []
  return Either.getOrElse(Either.try(() => new TextDecoder(charset).encoding), () => "utf-8")
}

const saveBody = (response: HttpClientResponse.HttpClientResponse, file: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const sink = Sink.mapError(fs.sink(pathOf(file)), () => unwritable(`Cannot write ${file}, the file of --output.`))
    yield* Stream.run(response.stream, sink)
  })

/**
 * Indents JSON if that changes only white space and escapes. Otherwise, as with a number that JavaScript would round or
 * a name that occurs twice, returns the text as it came.
 */
const indent = (text: string): string =>
  Either.getOrElse(
    Either.try(() => {
      const value: unknown = JSON.parse(text)
      return JSON.stringify(value) === compactJson(text) ? JSON.stringify(value, undefined, 2) : text
    }),
    () => text
  )

/** Removes white space between tokens, and writes strings with the escapes of `JSON.stringify`. */
const compactJson = (text: string): string =>
  text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|\s+/g, (part) => part.startsWith("\"") ? JSON.stringify(JSON.parse(part)) : "")

const whyNoResponse = (error: HttpClientError, settings: Settings): string => {
  const code = systemCode(error.cause)
  const name = code === undefined ? "" : ` (${code})`
  return error._tag === "ResponseError"
    ? `The response of the API broke off${name}. Try again.`
    : error.reason === "InvalidUrl"
    ? `The path cannot be joined with ${settings.nameOf("apiUrl")}. Start it with a slash.`
    : `Cannot reach the API${name}. Run store-api check with the same path.`
}
