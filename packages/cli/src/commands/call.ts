/** `store-api call METHOD PATH`: an authorized request, streamed both ways. */
import { STATUS_CODES } from "node:http"
import * as FileSystem from "@effect/platform/FileSystem"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type * as HttpMethod from "@effect/platform/HttpMethod"
import * as NodeStream from "@effect/platform-node/NodeStream"
import type { AccessToken } from "@store-api/core/AccessToken"
import { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import { make as makeSource, TokenSource } from "@store-api/core/TokenSource"
import * as NodeStoreAuth from "@store-api/platform-node/NodeStoreAuth"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import * as apiPath from "../apiPath.js"
import { configuration, exitCodes, Fault, fromLibrary, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import { readWithApi } from "../settings.js"
import * as tokens from "../tokens.js"

type Given = flags.Values<typeof flags.call>

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] satisfies ReadonlyArray<
  HttpMethod.HttpMethod
>

export const run = (given: Given, method: string, path: string) =>
  Effect.gen(function*() {
    const request = yield* requestOf(given, method, path)
    const settings = yield* readWithApi(given)
    const stored = !given["no-store"]
    const last = yield* Ref.make(Option.none<AccessToken>())
    const source = Layer.effect(
      TokenSource,
      tokens.lastingSource(settings, stored).pipe(
        Effect.map(({ acquire }) =>
          makeSource((replacing) => Effect.tap(acquire(replacing), (token) => Ref.set(last, Option.some(token))))
        ),
        Effect.mapError(fromLibrary)
      )
    )
    const { allowInsecure, apiUrl } = settings
    yield* Effect.gen(function*() {
      const client = yield* AuthorizedHttpClient
      const response = yield* client.execute(request)
      // Rejected, and no other was asked for, since the body is gone: the next run is not to find it again.
      if (stored && response.status === 401 && (yield* (yield* AccessTokenProvider).status).state === "Empty") {
        yield* Effect.flatMap(
          Ref.get(last),
          Option.match({ onNone: () => Effect.void, onSome: (token) => tokens.forget(settings, token) })
        )
      }
      if (given.include) yield* output.write("stdout", head(response))
      yield* Stream.runForEach(response.stream, (chunk) => output.write("stdout", chunk))
      if (given.fail && response.status >= 400) {
        return yield* new Fault({ code: exitCodes.status, message: `The API answered ${statusLine(response)}.` })
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.provide(NodeStoreAuth.layerFromSource({ apiUrl, allowInsecure }), source)),
      tokens.withConfigurationError,
      Effect.mapError((error) => {
        switch (error._tag) {
          case "Fault":
            return error
          case "RequestError":
          case "ResponseError":
            return new Fault({ code: exitCodes.noAnswer, message: noAnswer(error) })
          default:
            return fromLibrary(error)
        }
      })
    )
  })

const requestOf = (given: Given, method: string, path: string) =>
  Effect.gen(function*() {
    const known = methods.find((name) => name === method.toUpperCase())
    if (known === undefined) return yield* usage(`The method must be one of ${methods.join(", ")}.`)
    const headers = yield* Effect.forEach(given.header, headerOf)
    const request = HttpClientRequest.make(known)(yield* apiPath.checked(path))
    return HttpClientRequest.setHeaders(yield* withBody(given, request), headers)
  })

const headerOf = (text: string): Effect.Effect<readonly [string, string], Fault> => {
  const [, name, value] = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e]*)$/.exec(text) ?? []
  return name === undefined || value === undefined
    ? Effect.fail(usage("A --header must be a name, a colon and a value in ASCII, such as \"Accept: text/csv\"."))
    : Effect.succeed([name, value])
}

/** The body, as JSON unless a header says otherwise. What is streamed is sent once: a 401 is then the caller's, and the token goes. */
const withBody = (
  given: Given,
  request: HttpClientRequest.HttpClientRequest
): Effect.Effect<HttpClientRequest.HttpClientRequest, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const { data, "data-file": file } = given
    if (Option.isSome(data) && Option.isSome(file)) return yield* usage("--data and --data-file cannot both be given.")
    const contentType = "application/json"
    const { pathOf, process } = yield* Host
    if (Option.contains(data, "-") || Option.contains(file, "-")) {
      if (given["secret-stdin"]) return yield* usage("Standard input cannot hold both the secret and the body.")
      const stdin = NodeStream.fromReadable<Fault>(
        () => process.stdin,
        () => usage("Standard input cannot be read.")
      )
      return HttpClientRequest.bodyStream(request, stdin, { contentType })
    }
    if (Option.isSome(data)) return HttpClientRequest.bodyText(request, data.value, contentType)
    if (Option.isNone(file)) return request
    const fs = yield* FileSystem.FileSystem
    const path = pathOf(file.value)
    const { size, type } = yield* Effect.mapError(
      Effect.zipRight(fs.access(path, { readable: true }), fs.stat(path)),
      () => configuration(`The file of --data-file, ${file.value}, cannot be read.`)
    )
    if (type === "Directory") return yield* configuration(`--data-file ${file.value} is a folder: name a file.`)
    return HttpClientRequest.bodyStream(request, fs.stream(path), {
      contentType,
      ...(type === "File" && { contentLength: Number(size) })
    })
  })

const statusLine = ({ status }: HttpClientResponse.HttpClientResponse): string =>
  [status, STATUS_CODES[status]].filter((part) => part !== undefined).join(" ")

const head = (response: HttpClientResponse.HttpClientResponse): string =>
  [
    `HTTP/1.1 ${statusLine(response)}`,
    ...Object.entries(response.headers).map(([name, value]) => `${name}: ${value}`),
    "",
    ""
  ].join("\n")

/** Of the client's error only the system's name of the fault: it holds the request. */
const noAnswer = (error: HttpClientError.HttpClientError): string => {
  const code = systemCode(error.cause)
  const name = code === undefined ? "" : ` (${code})`
  return error._tag === "ResponseError"
    ? `The answer of the API broke off${name}: try again.`
    : error.reason === "InvalidUrl"
    ? "The path is not one that STORE_API_URL can be joined with: start it with a slash."
    : `The API could not be reached${name}: try \`store-api check PATH\`.`
}

const systemCode = (cause: unknown, depth = 0): string | undefined => {
  if (!Predicate.isObject(cause) || depth > 4) return undefined
  if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return cause.code
  return Predicate.hasProperty(cause, "cause") ? systemCode(cause.cause, depth + 1) : undefined
}
