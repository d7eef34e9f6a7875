/**
 * Requests `url` (argument 1) once with the named layer (argument 2), and writes the outcome. With `"interrupted"`
 * (argument 3) it interrupts the request while it waits. With `"leaked"` it leaves the request in a scope that is never
 * closed.
 */
import { readFileSync } from "node:fs"
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"

const [url = "", layer = "", end = "finished"] = process.argv.slice(2)

const ca = process.env["TEST_CA"]
const client: Layer.Layer<HttpClient.HttpClient, { readonly message: string }> = layer === "undici"
  ? NodeHttpClient.layerUndici
  : NodeHttp.layer({ ...(ca !== undefined && { ca: readFileSync(ca) }) })

const request = Effect.flatMap(HttpClient.HttpClient, (client) => client.get(url)).pipe(
  Effect.flatMap(({ text }) => text),
  Effect.catchTag("RequestError", ({ cause }) => Effect.succeed(String((cause as { readonly code?: unknown }).code)))
)

const program = end === "leaked"
  ? Effect.gen(function*() {
    const context = yield* Layer.buildWithScope(client, yield* Scope.make())
    yield* Effect.forkDaemon(Effect.provide(request, context))
    yield* Effect.sleep(500)
    return "leaked"
  })
  : Effect.timeoutOption(request, end === "interrupted" ? Duration.millis(500) : Duration.infinity).pipe(
    Effect.map(Option.getOrElse(() => "interrupted")),
    Effect.provide(client)
  )

void Effect.runPromise(
  program.pipe(Effect.catchAll(({ message }) => Effect.succeed(message)), Effect.flatMap(Console.log))
)
