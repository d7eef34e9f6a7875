/** `store-api emulator fail` and the other commands that steer an emulator on this machine. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { steeringPath } from "@store-api/emulator/EmulatorOptions"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { configurationError, usageError } from "../../CommandError.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { sources } from "../../settings/sources.js"
import type { failFlags } from "./flags.js"

const { variable } = sources.authUrl

/** Prints what the emulator says. */
export const steer = (
  action: string,
  flagValues: Partial<Values<typeof failFlags>>,
  argument: string
) =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const url = flagValues.port === undefined
      ? process.env[variable] ?? ""
      : `http://localhost:${flagValues.port}`
    const [, port] = /^https?:\/\/(?:127[.]0[.]0[.]1|localhost):(\d{1,5})(?:\/|$)/.exec(url) ??
      []
    const notFound = configurationError(
      `No emulator was found. Use --port PORT, or export its URL as ${variable}.`
    )
    if (port === undefined) return yield* notFound
    // The command listens on this address. Even with TLS, the emulator accepts these requests over plain http.
    const request = HttpClientRequest.post(`http://127.0.0.1:${port}${steeringPath}${action}`)
      .pipe(
        HttpClientRequest.bodyUnsafeJson({ argument, times: flagValues.times })
      )
    const { body: { message }, status } = yield* Effect.flatMap(
      HttpClient.execute(request),
      decode
    )
      .pipe(
        Effect.timeout("10 seconds"),
        Effect.mapError(() => notFound)
      )
    yield* status === 200
      ? output.line(message)
      : usageError(`The emulator refused this: ${message}`)
  }).pipe(Effect.provide(NodeHttpClient.layer))

const decode = HttpClientResponse.schemaJson(
  Schema.Struct({ status: Schema.Number, body: Schema.Struct({ message: Schema.String }) })
)
