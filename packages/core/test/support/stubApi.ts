import { HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Effect, Ref } from "effect"

export interface StubResponse {
  readonly status: number
  readonly headers?: Record<string, string>
}

/** An `HttpClient` without a network. Records the requests, and responds with the result of `respond`. */
export const stubApi = (
  respond: (request: HttpClientRequest.HttpClientRequest, number: number) => StubResponse = () => ({ status: 200 })
) =>
  Effect.map(Ref.make<ReadonlyArray<HttpClientRequest.HttpClientRequest>>([]), (sent) => ({
    sent: Ref.get(sent),
    client: HttpClient.make((request) =>
      Effect.map(Ref.updateAndGet(sent, (all) => [...all, request]), (all) => {
        const { headers, status } = respond(request, all.length)
        return HttpClientResponse.fromWeb(request, new Response("{}", { status, ...(headers ? { headers } : {}) }))
      })
    )
  }))

/** Responds with 401 to the tokens in the list, and with 200 to all others. */
export const rejecting = (...values: ReadonlyArray<string>) => (request: HttpClientRequest.HttpClientRequest) => ({
  status: values.some((value) => request.headers["authorization"] === `Bearer ${value}`) ? 401 : 200
})
