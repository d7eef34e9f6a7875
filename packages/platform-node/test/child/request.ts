/** Requests `url` (argument 1) once, and writes the outcome. Interrupts it if argument 2 is `"interrupted"`. */
import { readFileSync } from "node:fs"
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const [url = "", end = "finished"] = process.argv.slice(2)

const ca = process.env["TEST_CA"]

const request = Effect.flatMap(HttpClient.HttpClient, (client) => client.get(url)).pipe(
  Effect.flatMap(({ text }) => text),
  Effect.catchTag(
    "RequestError",
    ({ cause }) => Effect.succeed(String((cause as { readonly code?: unknown }).code))
  )
)

const program = Effect.timeoutOption(
  request,
  end === "interrupted" ? Duration.millis(500) : Duration.infinity
).pipe(
  Effect.map(Option.getOrElse(() => "interrupted")),
  Effect.provide(NodeHttp.layer({ ...(ca !== undefined && { ca: readFileSync(ca) }) }))
)

void Effect.runPromise(
  program.pipe(
    Effect.catchAll(({ message }) => Effect.succeed(message)),
    Effect.flatMap(Console.log)
  )
)
