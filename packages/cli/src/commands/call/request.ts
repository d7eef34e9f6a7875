/** The request of `store-api call`. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpMethod from "@effect/platform/HttpMethod"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Effect from "effect/Effect"
import { checkPath } from "../../apiPath.js"
import { type CommandError, configurationError, usageError } from "../../CommandError.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import type { callFlags } from "./flags.js"

type FlagValues = Values<typeof callFlags>

export const makeRequest = (flagValues: FlagValues, path: string) =>
  Effect.gen(function*() {
    const method = flagValues.method?.toUpperCase() ??
      (flagValues.data === undefined ? "GET" : "POST")
    if (!HttpMethod.isHttpMethod(method)) {
      return yield* usageError(`--method must be one of ${[...HttpMethod.all].join(", ")}.`)
    }
    const headers = yield* Effect.forEach(flagValues.header, parseHeader)
    const request = HttpClientRequest.make(method)(yield* checkPath(path))
    return HttpClientRequest.setHeaders(yield* addBody(flagValues, request), headers)
  })

const parseHeader = (text: string): Effect.Effect<readonly [string, string], CommandError> => {
  const [, name, value] =
    /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e]*)$/.exec(text) ?? []
  return name === undefined || value === undefined
    ? usageError(
      "A --header must be a name, a colon and a value in ASCII, such as \"Accept: text/csv\"."
    )
    : Effect.succeed([name, value])
}

/** Adds the body, as JSON unless a header says otherwise. Streams standard input, so only once. */
const addBody = (
  { data, ...flagValues }: FlagValues,
  request: HttpClientRequest.HttpClientRequest
) =>
  Effect.gen(function*() {
    const contentType = "application/json"
    const { pathOf, process } = yield* Host
    if (data === undefined) return request
    if (data === "-" || data === "@-") {
      if (flagValues["secret-file"] === "-") {
        return yield* usageError("Standard input cannot hold both the secret and the body.")
      }
      const stdin = NodeStream.fromReadable<CommandError>(
        () => process.stdin,
        () => usageError("Cannot read standard input.")
      )
      return HttpClientRequest.bodyStream(request, stdin, { contentType })
    }
    if (!data.startsWith("@")) return HttpClientRequest.bodyText(request, data, contentType)
    const file = data.slice(1)
    const fs = yield* FileSystem.FileSystem
    const problem = configurationError(`Cannot read ${file}, the file of --data.`)
    const bytes = yield* Effect.mapError(fs.readFile(pathOf(file)), () => problem)
    return HttpClientRequest.bodyUint8Array(request, bytes, contentType)
  })
