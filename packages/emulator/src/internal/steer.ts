/** Sends a command to an emulator that runs on this machine. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { unusable } from "./settings.js"
import { prefix } from "./steering.js"

/** Prints what the emulator says. */
export const steer = (name: string, { port, times }: Readonly<Record<string, unknown>>, argument: string) =>
  Effect.gen(function*() {
    const option = port === undefined ? variable : "--port"
    // The command listens on this address. Even with TLS, the emulator accepts these requests over plain http.
    const url = `http://127.0.0.1:${yield* portOf(port)}${prefix}${name}`
    const body = HttpClientRequest.bodyText(JSON.stringify({ argument, times }), "application/json")
    const client = yield* HttpClient.HttpClient
    const { said, status } = yield* client.execute(body(HttpClientRequest.post(url))).pipe(
      Effect.flatMap((response) => Effect.map(answer(response), (said) => ({ said, status: response.status }))),
      Effect.timeout("10 seconds"),
      Effect.mapError(() => unusable(option, "must be that of a running emulator", "NotRunning"))
    )
    // Another program may listen there, and a terminal would obey its control characters.
    const message = said.message.replace(/[^\P{C}\n]/gu, "?")
    if (status !== 200) yield* unusable("The emulator", `refused this: ${message.replace(/[.]$/, "")}`)
    yield* Console.log(message)
  }).pipe(Effect.provide(NodeHttpClient.layer))

const answer = HttpClientResponse.schemaBodyJson(Schema.Struct({ message: Schema.String }))

const variable = "STORE_API_AUTH_URL"

/** The port that --port names, or that of the URL in the variable. */
const portOf = (given: unknown) =>
  Effect.gen(function*() {
    if (/^\d{1,5}$/.test(String(given))) return String(given)
    if (given !== undefined) return yield* unusable("--port", "must be a port")
    const missing = unusable("--port", `must name the port of the emulator, because ${variable} is not set`)
    const url = yield* Effect.mapError(Config.string(variable), () => missing)
    const [, port] = /^https?:\/\/(?:127[.]0[.]0[.]1|localhost):(\d+)/.exec(url) ?? []
    return port ?? (yield* unusable(variable, "must be the URL of an emulator on 127.0.0.1; otherwise, use --port"))
  })
