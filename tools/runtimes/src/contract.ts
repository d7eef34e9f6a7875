/** The contract that core satisfies on every runtime with `fetch`. */
import type { AuthorizedHttpClient } from "@store-api/core"
import { Array as Arr, Duration, Effect, Exit, Fiber, Option, Redacted, Scope } from "effect"
import { type Check, check, equal, errorOf, holds, named, nothingListens, store } from "./Check.js"
import * as secrets from "./secrets.js"

/** Reads a response, as an application does. */
const statusOf = (client: AuthorizedHttpClient.Service) =>
  Effect.flatMap(client.get("/orders"), (response) => Effect.as(response.text, response.status))

/** A token is acquired, cached, renewed and revoked. */
const life = [
  check("acquires a token with its lifetime", function*() {
    const { emulator, provider } = yield* store()
    const token = yield* provider.get
    const { tokens } = yield* emulator.view
    equal("the token", [Redacted.value(token.value)], tokens)
    equal("its lifetime", token.expiresAt.epochMillis - token.acquiredAt.epochMillis, 3_600_000)
  }),

  check("the body is sent raw, with the exact content type", function*() {
    const { emulator, provider } = yield* store()
    yield* provider.get
    const { clientId, clientSecret } = emulator
    holds("the secret holds what a form would encode", /\+.*=.*%/.test(clientSecret))
    const { requests: [request] } = yield* emulator.view
    equal(
      "the body",
      request?.body,
      `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
    )
    equal("the type", request?.contentType, "application/x-www-form-urlencoded")
  }),

  check("a second call uses the cached token: 1 token request", function*() {
    const { client, emulator } = yield* store()
    equal("the responses", [yield* statusOf(client), yield* statusOf(client)], [200, 200])
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),

  check("100 callers at once: 1 token request", function*() {
    const { emulator, provider } = yield* store()
    const tokens = yield* Effect.all(Arr.makeBy(100, () => provider.get), { concurrency: "unbounded" })
    equal("tokens", [tokens.length, new Set(tokens).size], [100, 1])
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),

  check("a token of 4 s expires, as a typed error, and is renewed", function*() {
    const { emulator, provider } = yield* store({ tokenLife: 4000 })
    const first = yield* provider.get
    holds("it is held", Option.isSome(yield* provider.current))
    yield* Effect.sleep("4100 millis")
    equal("then", named(yield* errorOf(provider.current)), "TokenExpiredError, Elapsed")
    const second = yield* provider.get
    holds("another one", Redacted.value(first.value) !== Redacted.value(second.value))
    equal("token requests", yield* emulator.tokenRequests, 2)
  }),

  check("calls during two lifetimes of 4 s: each gets a 200", function*() {
    const { client, emulator } = yield* store({ tokenLife: 4000 })
    const began = performance.now()
    const timed = Effect.zipLeft(Effect.timed(statusOf(client)), Effect.sleep("200 millis"))
    const calls = yield* Effect.replicateEffect(timed, 43)
    equal("the responses", Arr.dedupe(calls.map(([, status]) => status)), [200])
    const { requests } = yield* emulator.view
    const rejected = requests.filter(({ status }) => status === 401).length
    // Callers wait when less than 5 % of the lifetime is left. A slower call can meet the end of its token.
    const slowest = Math.max(...calls.map(([duration]) => Duration.toMillis(duration)))
    holds(`${rejected} × 401 on the wire, the slowest call took ${slowest} ms`, rejected === 0 || slowest > 100)
    const asked = yield* emulator.tokenRequests
    // Renewed when at most a quarter of the lifetime is left.
    const atMost = Math.ceil((performance.now() - began) / 3000) + 1
    holds(`${asked} token requests, 3 to ${atMost}`, asked >= 3 && asked <= atMost)
  }),

  check("a revoked token is replaced: 401, then 200, and 1 token request", function*() {
    const { client, emulator } = yield* store()
    yield* statusOf(client)
    yield* emulator.revoke
    equal("the response", yield* statusOf(client), 200)
    const { requests } = yield* emulator.view
    const onTheWire = requests.map(({ kind, status }) => `${kind} ${String(status)}`)
    equal("on the wire", onTheWire, ["token 200", "api 200", "api 401", "token 200", "api 200"])
  }),

  check("100 calls in flight with a revoked token: none fails, and 1 token request", function*() {
    const { client, emulator } = yield* store()
    yield* statusOf(client)
    yield* emulator.revoke
    const statuses = yield* Effect.all(Arr.makeBy(100, () => statusOf(client)), { concurrency: 20 })
    equal("the responses", Arr.dedupe(statuses), [200])
    equal("token requests", yield* emulator.tokenRequests, 2)
  }),

  check("an interrupted caller does not affect the others", function*() {
    const { emulator, provider } = yield* store()
    yield* emulator.fail("token/slow-answer")
    const first = yield* Effect.fork(provider.get)
    const second = yield* Effect.fork(provider.get)
    yield* Effect.sleep("50 millis")
    yield* Fiber.interrupt(first)
    yield* Fiber.join(second)
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),

  check("after the end of the layer: Closed", function*() {
    const { provider } = yield* Effect.scoped(store())
    equal("the error", named(yield* errorOf(provider.get)), "TokenRequestError, Closed")
  }),

  check(
    "acquires a token from a response that is compressed although the request did not ask for it",
    function*() {
      const { emulator, provider } = yield* store()
      yield* emulator.fail("token/unasked-gzip")
      yield* provider.get
      equal("token requests", yield* emulator.tokenRequests, 1)
    }
  ),

  check("closing the provider during an acquisition ends waiting callers with Closed", function*() {
    const scope = yield* Scope.make()
    const { emulator, provider } = yield* Scope.extend(store(), scope)
    yield* emulator.fail("token/silence")
    const waiter = yield* Effect.fork(errorOf(provider.get))
    yield* Effect.sleep("100 millis")
    yield* Scope.close(scope, Exit.void)
    equal("the error", named(yield* Fiber.join(waiter)), "TokenRequestError, Closed")
  })
]

/** Scenarios that end the acquisition after one request, each with its error. */
const ends = {
  "token/401-rfc": "TokenRefusedError, InvalidClient",
  "token/400-gateway": "TokenRefusedError, InvalidRequest",
  "token/403-html": "TokenRefusedError, Other",
  "token/429-retry-after-year": "TokenRefusedError, RateLimited",
  "token/body-html": "TokenResponseError",
  "token/body-truncated": "TokenResponseError",
  "token/body-garbage": "TokenResponseError",
  "token/flood-endless": "TokenRequestError, TooLarge",
  "token/expires-in-zero": "TokenExpiredError, DeadOnArrival",
  "token/redirect-301": "TokenRequestError, Redirect",
  "token/redirect-302": "TokenRequestError, Redirect",
  "token/redirect-303": "TokenRequestError, Redirect",
  "token/redirect-307": "TokenRequestError, Redirect",
  "token/redirect-308": "TokenRequestError, Redirect"
}

const recoveries = [
  "token/reset-before-headers",
  "token/reset-in-headers",
  "token/reset-in-body",
  "token/close-in-body",
  "token/bad-chunks",
  "token/503-json"
]

const silences = ["token/silence", "token/silence-in-body", "token/drip"]

/** Every failed acquisition is a typed error within its time limit, never a defect. */
const faults = [
  check("a wrong secret: TokenRefusedError, InvalidClient, after 1 request", function*() {
    const { emulator, provider } = yield* store({ clientSecret: Redacted.make("an+invented/wrong%one") })
    equal("the error", named(yield* errorOf(provider.get)), "TokenRefusedError, InvalidClient")
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),

  ...Object.entries(ends).map(([scenario, error]) =>
    check(`${scenario}: ${error}`, function*() {
      const { emulator, provider } = yield* store()
      yield* emulator.fail(scenario)
      equal("the error", named(yield* errorOf(provider.get)), error)
      equal("token requests", yield* emulator.tokenRequests, 1)
      equal("requests elsewhere", (yield* emulator.view).elsewhere.length, 0)
    })
  ),

  ...recoveries.map((scenario) =>
    check(`${scenario}: the next call gets a token`, function*() {
      const { emulator, provider } = yield* store()
      yield* emulator.fail(scenario, 1)
      yield* provider.get
      equal("token requests", yield* emulator.tokenRequests, 2)
    })
  ),

  check("nothing listens: TokenRequestError, Transport, within the deadline", function*() {
    const { provider } = yield* store({ authUrl: nothingListens, endpoint: { deadline: "1 second" } })
    const [elapsed, error] = yield* Effect.timed(errorOf(provider.get))
    equal("the error", named(error), "TokenRequestError, Transport")
    holds("when to ask again", Option.isSome(error.retryAt))
    holds(`${String(elapsed)}, within the deadline`, Duration.toMillis(elapsed) < 5000)
  }),

  ...silences.map((scenario) =>
    check(`${scenario}: TokenRequestError, Timeout, within the deadline`, function*() {
      const endpoint = { attemptTimeout: "10 seconds", deadline: "1 second" } as const
      const { emulator, provider } = yield* store({ endpoint })
      yield* emulator.fail(scenario)
      const [elapsed, error] = yield* Effect.timed(errorOf(provider.get))
      equal("the error", named(error), "TokenRequestError, Timeout")
      const millis = Duration.toMillis(elapsed)
      holds(`${millis} ms, about the deadline`, millis > 900 && millis < 5000)
      equal("token requests", yield* emulator.tokenRequests, 1)
    })
  ),

  check("a silent attempt times out, and the next one gets the token", function*() {
    const { emulator, provider } = yield* store({ endpoint: { attemptTimeout: "2 seconds" } })
    yield* emulator.fail("token/silence", 1)
    yield* provider.get
    equal("token requests", yield* emulator.tokenRequests, 2)
  })
]

const certificate = (reason: string, attempts: number) =>
  check(`an untrusted certificate: TokenRequestError, ${reason}, no token`, function*() {
    const { emulator, provider } = yield* store({ tls: true })
    holds("over TLS", emulator.url.startsWith("https:"))
    const error = yield* errorOf(provider.get)
    equal("the error", named(error), `TokenRequestError, ${reason}`)
    equal("attempts", error._tag === "TokenRequestError" && error.attempts, attempts)
    equal("token requests", yield* emulator.tokenRequests, 0)
  })

/** `certificates`: whether the runtime reports that a certificate caused a failure. */
export const checks = ({ certificates }: { readonly certificates: boolean }): ReadonlyArray<Check> => [
  ...life,
  ...faults,
  certificates ? certificate("Certificate", 1) : certificate("Transport", 6),
  ...secrets.checks
]
