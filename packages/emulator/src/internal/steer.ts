/** Sends a command to an emulator that runs on this machine. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { EmulatorError } from "../EmulatorError.js"
import { prefix } from "./steering.js"

/** Prints what the emulator says. */
export const steer = (name: string, { port, times }: Readonly<Record<string, unknown>>, argument: string) =>
  Effect.gen(function*() {
    const notRunning = error(
      port === undefined ? variable : "--port",
      "must be that of an emulator that runs",
      "NotRunning"
    )
    // The command listens on this address. Also with TLS, the emulator expects these requests without it.
    const url = `http://127.0.0.1:${yield* portOf(port)}${prefix}${name}`
    const body = HttpClientRequest.bodyText(JSON.stringify({ argument, times }), "application/json")
    const client = yield* HttpClient.HttpClient
    const { status, text } = yield* Effect.flatMap(
      client.execute(body(HttpClientRequest.post(url))),
      (response) => Effect.map(response.text, (text) => ({ status: response.status, text }))
    ).pipe(
      Effect.timeout("10 seconds"),
      Effect.mapError(() => notRunning)
    )
    const { message } = yield* Option.match(messageIn(text), {
      onNone: () => Effect.fail(notRunning),
      onSome: Effect.succeed
    })
    if (status !== 200) return yield* Effect.fail(error("The emulator", `refused this: ${message.replace(/[.]$/, "")}`))
    yield* Console.log(message)
  }).pipe(Effect.provide(NodeHttpClient.layer))

const messageIn = Schema.decodeOption(Schema.parseJson(Schema.Struct({ message: Schema.String })))

const variable = "STORE_API_AUTH_URL"

const error = (option: string, problem: string, reason: EmulatorError["reason"] = "InvalidOption") =>
  new EmulatorError({ reason, option, problem })

const portOf = (given: unknown): Effect.Effect<string, EmulatorError> => {
  const port = String(given)
  if (given !== undefined) {
    return /^\d{1,5}$/.test(port) ? Effect.succeed(port) : Effect.fail(error("--port", "must be a port"))
  }
  return Effect.matchEffect(Config.string("STORE_API_AUTH_URL"), {
    onFailure: () => Effect.fail(error("--port", `must name the port of the emulator, because ${variable} is not set`)),
    onSuccess: (text) => {
      const port = /^https?:\/\/(?:127[.]0[.]0[.]1|localhost):(\d+)/.exec(text)?.[1]
      const problem = "must be the URL of an emulator on 127.0.0.1; otherwise, use --port"
      return port === undefined ? Effect.fail(error(variable, problem)) : Effect.succeed(port)
    }
  })
}
