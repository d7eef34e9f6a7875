/** The HTTP client of a run. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { version } from "../Host.js"
import * as output from "../output.js"

/** Headers, body and query may hold secrets. */
export const nameOf = ({ method, url }: HttpClientRequest.HttpClientRequest): string =>
  `${method} ${url.replace(/\?.*/s, "")}`

/** Reports a request and its outcome, even if a time limit interrupts it. */
const report = <E, R>(
  send: Effect.Effect<HttpClientResponse, E, R>,
  request: HttpClientRequest.HttpClientRequest
) =>
  Effect.flatMap(Clock.currentTimeMillis, (start) =>
    Effect.onExit(send, (exit) => {
      const outcome = Exit.match(exit, {
        onFailure: () => "no response",
        onSuccess: ({ status }) => String(status)
      })
      return Effect.flatMap(
        Clock.currentTimeMillis,
        (end) => output.note(`${nameOf(request)}: ${outcome} (${end - start} ms)`)
      )
    }))

/** The HTTP client of a run, with its own User-Agent, but without trace headers, because nobody collects the traces. */
export const layerHttp = ({ verbose }: { readonly verbose: boolean }) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) =>
      (verbose ? HttpClient.transform(client, report) : client).pipe(
        HttpClient.withTracerPropagation(false),
        HttpClient.mapRequest((request) =>
          ["store-api", undefined].includes(request.headers["user-agent"])
            ? HttpClientRequest.setHeader(request, "user-agent", `store-api/${version()}`)
            : request
        )
      ))
  ).pipe(Layer.provide(NodeHttp.layer()))
