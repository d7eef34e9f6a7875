/** The HTTP client of a run, which reports its requests on standard error. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as output from "./output.js"

/** Names a request that takes long and, with `verbose`, each one with its outcome. */
const reported = <E, R>(client: HttpClient.HttpClient.With<E, R>, verbose: boolean) =>
  HttpClient.transform(client, (send, { method, url }) => {
    // Headers, body and query may hold secrets.
    const request = `${method} ${url.replace(/\?.*/s, "")}`
    const sent = output.whileWaiting(request, send)
    return verbose
      ? Effect.flatMap(Effect.timed(Effect.exit(sent)), ([took, exit]) => {
        const outcome = Exit.match(exit, { onFailure: () => "no response", onSuccess: ({ status }) => String(status) })
        return Effect.zipRight(output.note(`${request}: ${outcome} (${Math.round(Duration.toMillis(took))} ms)`), exit)
      })
      : sent
  })

export const layerHttp = ({ verbose }: { readonly verbose: boolean }) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) => reported(client, verbose))
  ).pipe(Layer.provide(NodeHttp.layer()))
