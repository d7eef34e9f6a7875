/** Every failed acquisition is a typed error within its time limit, never a defect. */
import { Duration, Effect, Option, Redacted } from "effect"
import { type Check, check, equal, errorOf, holds, named, nothingListens, store } from "../Check.js"

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

/** `certificates`: whether the runtime reports that a certificate caused a failure. */
export const checks = (certificates: boolean): ReadonlyArray<Check> => [
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
    holds(`${String(elapsed)}, within the deadline`, Duration.toMillis(elapsed) < 2000)
  }),

  ...silences.map((scenario) =>
    check(`${scenario}: TokenRequestError, Timeout, within the deadline`, function*() {
      const endpoint = { attemptTimeout: "10 seconds", deadline: "1 second" } as const
      const { emulator, provider } = yield* store({ endpoint })
      yield* emulator.fail(scenario)
      const [elapsed, error] = yield* Effect.timed(errorOf(provider.get))
      equal("the error", named(error), "TokenRequestError, Timeout")
      const millis = Duration.toMillis(elapsed)
      holds(`${millis} ms, about the deadline`, millis > 900 && millis < 3000)
      equal("token requests", yield* emulator.tokenRequests, 1)
    })
  ),

  check("a silent attempt times out, and the next one gets the token", function*() {
    const { emulator, provider } = yield* store({ endpoint: { attemptTimeout: "300 millis" } })
    yield* emulator.fail("token/silence", 1)
    yield* provider.get
    equal("token requests", yield* emulator.tokenRequests, 2)
  }),

  certificates ? certificate("Certificate", 1) : certificate("Transport", 6)
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
