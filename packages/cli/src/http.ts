/** The HTTP client of a run, which reports its requests on standard error. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { version } from "./Host.js"
import * as output from "./output.js"

/** Headers, body and query may hold secrets. */
export const nameOf = ({ method, url }: HttpClientRequest.HttpClientRequest): string =>
  `${method} ${url.replace(/\?.*/s, "")}`

/** Reports a request with its outcome, also one that a time limit interrupts. */
const reported = <E, R>(sent: Effect.Effect<HttpClientResponse, E, R>, request: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(Clock.currentTimeMillis, (start) =>
    Effect.onExit(sent, (exit) => {
      const outcome = Exit.match(exit, { onFailure: () => "no response", onSuccess: ({ status }) => String(status) })
      const report = (end: number) => output.note(`${nameOf(request)}: ${outcome} (${end - start} ms)`)
      return Effect.flatMap(Clock.currentTimeMillis, report)
    }))

/** Without headers of a trace, which nobody collects. The token request has a name of the library. */
export const layerHttp = ({ verbose }: { readonly verbose: boolean }) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) =>
      (verbose ? HttpClient.transform(client, reported) : client).pipe(
        HttpClient.withTracerPropagation(false),
        HttpClient.mapRequest((request) =>
          ["store-api", undefined].includes(request.headers["user-agent"])
            ? HttpClientRequest.setHeader(request, "user-agent", `store-api/${version()}`)
            : request
        )
      ))
  ).pipe(Layer.provide(NodeHttp.layer()))
