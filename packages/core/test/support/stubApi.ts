import { HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Effect, Ref } from "effect"

export interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
}

/** An `HttpClient` without a network: records what would leave, and answers with a function of it. */
export const stubApi = (
  answer: (request: HttpClientRequest.HttpClientRequest, number: number) => Answer = () => ({ status: 200 })
) =>
  Effect.map(Ref.make<ReadonlyArray<HttpClientRequest.HttpClientRequest>>([]), (sent) => ({
    sent: Ref.get(sent),
    client: HttpClient.make((request) =>
      Effect.map(Ref.updateAndGet(sent, (all) => [...all, request]), (all) => {
        const { headers, status } = answer(request, all.length)
        return HttpClientResponse.fromWeb(request, new Response("{}", { status, ...(headers ? { headers } : {}) }))
      })
    )
  }))

/** Answers 401 to every token in the list, 200 to the others. */
export const rejecting = (...values: ReadonlyArray<string>) => (request: HttpClientRequest.HttpClientRequest) => ({
  status: values.some((value) => request.headers["authorization"] === `Bearer ${value}`) ? 401 : 200
})
