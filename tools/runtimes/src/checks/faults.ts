/** Every failed acquisition is a typed error within its time limit, never a defect. */
import { AccessTokenProvider, type TokenEndpoint } from "@store-api/core"
import { Context, Duration, Effect, Option, Redacted } from "effect"
import { type Check, equal, errorOf, holds, named, nothingListens, options, storeAuth } from "../Check.js"
import { type Emulator, Laboratory } from "../Laboratory.js"

type Timing = Pick<TokenEndpoint.Options, "attemptTimeout" | "deadline">

/** Calls `get` once, with the emulator failing as in the scenario. */
const failing = (scenario: string, times?: number, endpoint?: Timing) =>
  Effect.gen(function*() {
    const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
    yield* emulator.fail(scenario, times)
    const context = yield* storeAuth({ ...options(emulator), endpoint })
    return { emulator, get: Context.get(context, AccessTokenProvider.AccessTokenProvider).get }
  })

const redirects = [301, 302, 303, 307, 308]

/** A scenario, its error, and the fewest and the most requests. */
const ends: ReadonlyArray<readonly [scenario: string, error: string, fewest: number, most: number]> = [
  ["token/401-rfc", "TokenRefusedError, InvalidClient", 1, 1],
  ["token/400-gateway", "TokenRefusedError, InvalidRequest", 1, 1],
  ["token/403-html", "TokenRefusedError, Other", 1, 1],
  ["token/429-retry-after-year", "TokenRefusedError, RateLimited", 1, 1],
  ["token/body-html", "TokenResponseError", 1, 1],
  ["token/body-truncated", "TokenResponseError", 1, 1],
  ["token/body-garbage", "TokenResponseError", 1, 1],
  ["token/flood-endless", "TokenRequestError, TooLarge", 1, 1],
  ["token/expires-in-zero", "TokenExpiredError, DeadOnArrival", 1, 1],
  ...redirects.map((status) => [`token/redirect-${status}`, "TokenRequestError, Redirect", 1, 1] as const)
]

const recoveries = [
  "token/reset-before-headers",
  "token/reset-in-headers",
  "token/reset-in-body",
  "token/close-in-body",
  "token/bad-chunks",
  "token/503-json"
]

const wrongSecret = (emulator: Emulator) => ({
  ...options(emulator),
  clientSecret: Redacted.make("an+invented/wrong%one")
})

export const checks: ReadonlyArray<Check> = [
  {
    name: "a wrong secret: TokenRefusedError, InvalidClient, after 1 request",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const context = yield* storeAuth(wrongSecret(emulator))
      const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      yield* equal("the error", named(yield* errorOf(get)), "TokenRefusedError, InvalidClient")
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  ...ends.map(([scenario, error, fewest, most]): Check => ({
    name: `${scenario}: ${error}`,
    run: Effect.gen(function*() {
      const { emulator, get } = yield* failing(scenario)
      yield* equal("the error", named(yield* errorOf(get)), error)
      const { elsewhere } = yield* emulator.view
      const asked = yield* emulator.tokenRequests
      yield* holds(`${asked} token requests, ${fewest} to ${most}`, asked >= fewest && asked <= most)
      yield* equal("requests elsewhere", elsewhere.length, 0)
    })
  })),
  ...recoveries.map((scenario): Check => ({
    name: `${scenario}: the next call gets a token`,
    run: Effect.gen(function*() {
      const { emulator, get } = yield* failing(scenario, 1)
      yield* get
      const asked = yield* emulator.tokenRequests
      yield* equal("token requests", asked, 2)
    })
  })),
  {
    name: "nothing listens: TokenRequestError, Transport, within the deadline",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const context = yield* storeAuth({
        ...options(emulator),
        authUrl: nothingListens,
        endpoint: { deadline: "1 second" }
      })
      const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      const [elapsed, error] = yield* Effect.timed(errorOf(get))
      yield* equal("the error", named(error), "TokenRequestError, Transport")
      yield* holds("when to ask again", Option.isSome(error.retryAt))
      yield* holds(`${String(elapsed)}, within the deadline`, Duration.toMillis(elapsed) < 2000)
    })
  },
  ...["token/silence", "token/silence-in-body", "token/drip"].map((scenario): Check => ({
    name: `${scenario}: TokenRequestError, Timeout, within the deadline`,
    run: Effect.gen(function*() {
      const { emulator, get } = yield* failing(scenario, undefined, {
        attemptTimeout: "10 seconds",
        deadline: "1 second"
      })
      const [elapsed, error] = yield* Effect.timed(errorOf(get))
      yield* equal("the error", named(error), "TokenRequestError, Timeout")
      yield* holds(
        `${String(elapsed)}, about the deadline`,
        Duration.toMillis(elapsed) > 900 && Duration.toMillis(elapsed) < 3000
      )
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  })),
  {
    name: "a silent attempt times out, and the next one gets the token",
    run: Effect.gen(function*() {
      const { emulator, get } = yield* failing("token/silence", 1, { attemptTimeout: "300 millis" })
      yield* get
      yield* equal("token requests", yield* emulator.tokenRequests, 2)
    })
  }
]

/** The error on a runtime that reports certificate errors, and on one that hides them. */
export const certificate = (told: boolean): Check => {
  const [expected, attempts] = told ? ["TokenRequestError, Certificate", 1] : ["TokenRequestError, Transport", 6]
  return {
    name: `an untrusted certificate: ${expected}, no token`,
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator({ tls: true }))
      yield* holds("over TLS", emulator.url.startsWith("https:"))
      const context = yield* storeAuth(options(emulator))
      const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      const error = yield* errorOf(get)
      yield* equal("the error", named(error), expected)
      yield* equal("attempts", error._tag === "TokenRequestError" && error.attempts, attempts)
      yield* equal("token requests", yield* emulator.tokenRequests, 0)
    })
  }
}
