/** Reads what the emulator received. It is the token endpoint and the API, and checks each proof. */
import { Emulator, type RecordedRequest } from "@store-api/emulator"
import { Effect, Option, Redacted } from "effect"

/** The options of a client of both servers. */
export const optionsFor = (
  { url }: Emulator.Service,
  { clientId, clientSecret }: {
    readonly clientId: string
    readonly clientSecret: Redacted.Redacted
  } = Emulator.demoClient
) => ({ authUrl: url, apiUrl: url, clientId, clientSecret })

/** Reasons that no client can avoid: a nonce that it does not know yet, and the fault that makes nonces stale. */
const expectedReasons = ["The nonce is missing or not valid.", "fault ForgetNonces"]

/** Returns why requests were refused, except for their nonces. */
export const problemsOf = ({ requests }: Emulator.Service) =>
  Effect.map(
    requests,
    (all) =>
      all.flatMap(({ reason }) => Option.toArray(reason)).filter((reason) =>
        !expectedReasons.includes(reason)
      )
  )

/** Returns the requests to the token endpoint or to the API. */
export const requestsTo = (
  kind: RecordedRequest.Kind,
  { requests }: Emulator.Service
) => Effect.map(requests, (all) => all.filter((request) => request.kind === kind))

/** Returns the number of tokens that were issued. */
export const tokenCount = ({ tokens }: Emulator.Service) =>
  Effect.map(tokens, ({ length }) => length)

/** Returns the body of each request to the API. */
export const apiBodies = (emulator: Emulator.Service) =>
  Effect.map(requestsTo("api", emulator), (all) => all.map(({ body }) => Redacted.value(body)))

/** Returns status, method and path of each response of the API, such as `200 GET /orders`. */
export const apiResponses = (emulator: Emulator.Service) =>
  Effect.map(
    requestsTo("api", emulator),
    (all) =>
      all.map(({ method, status, url }) =>
        `${Option.getOrElse(status, () => 0)} ${method} ${url}`
      )
  )

/** Returns the proof of each request. */
export const proofsOf = ({ requests }: Emulator.Service) =>
  Effect.map(requests, (all) =>
    all.map(({ headers }) => {
      const { dpop = "" } = headers
      return Redacted.isRedacted(dpop) ? Redacted.value(dpop) : dpop
    }))

/** Returns the assertion of each token request that has one. */
export const assertionsOf = (emulator: Emulator.Service) =>
  Effect.map(requestsTo("token", emulator), (all) =>
    all.flatMap(({ body }) => {
      const assertion = new URLSearchParams(Redacted.value(body)).get("client_assertion")
      return assertion === null ? [] : [assertion]
    }))
