/**
 * Declares the tests of the library against every scenario of the emulator, with the given HTTP clients. All scenarios
 * run concurrently before the tests. Those that need a client with a key run in the tests of `@store-api/dpop`.
 */
import { HttpBody, HttpClient, type HttpClientResponse } from "@effect/platform"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessTokenError } from "@store-api/core"
import { type RecordedRequest, Scenario } from "@store-api/emulator"
import { isFailure } from "@store-api/testing/effectMajor"
import { needsKey } from "@store-api/testing/scenarios"
import { Array as Arr, Cause, Effect, Exit, Option, Redacted } from "effect"
import type { Client } from "../support/clients.js"
import { watchUnhandled } from "../support/telemetry.js"
import { type Actors, margin, observe, type Run, type Timing } from "./observation.js"

/** The typed failure of a run that has ended, if any. */
const failureOf = <E>(exit: Exit.Exit<unknown, E>): E | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  assert.isTrue(isFailure(exit.cause), Cause.pretty(exit.cause))
  return Option.getOrUndefined(Cause.failureOption(exit.cause))
}

// The token endpoint: each scenario, once per client.

type TokenName = Extract<Scenario.Name, `token/${string}`>

const plainNames = Scenario.names.filter((name) => !needsKey(name))

const isTokenName = (name: Scenario.Name): name is TokenName => name.startsWith("token/")

/** Short attempts where a timeout is expected, and always enough time for all attempts, even if the machine pauses. */
const timingOf = (outcome: Scenario.TokenOutcome): Timing => ({
  attemptTimeout: [outcome, ...outcome.or ?? []].some(({ reason }) => reason === "Timeout")
    ? 150
    : 10_000,
  deadline: 30_000
})

/** Asks for a token, and records the outcome. */
const acquire = (client: Client, name: TokenName) => {
  const scenario: Scenario.Scenario<Scenario.TokenOutcome> = Scenario.all[name]
  const timing = timingOf(scenario.outcome)
  return Effect.map(
    observe({ client, scenario, timing }, ({ provider }) => provider.get),
    (run) => {
      const error = Option.getOrUndefined(Option.map(run.exit, failureOf))
      const attempts = error?._tag === "TokenRequestError"
        ? error.attempts
        : run.requests.length
      return { ...run, key: `${name}, ${client.name}`, name, timing, error, attempts }
    }
  )
}

type Acquired = Effect.Effect.Success<ReturnType<typeof acquire>>

const isExpected = (
  { error, reason }: Partial<Scenario.Failure>,
  actual: AccessTokenError.AccessTokenError | undefined
): boolean =>
  error === actual?._tag &&
  (reason === undefined ||
    (actual !== undefined && "reason" in actual && reason === actual.reason))

/** The first attempt and five retries. */
const mostAttempts = 6

const checkAmount = (
  actual: number,
  expected: number | "several" | undefined,
  unit: string
) => {
  if (typeof expected === "number") {
    assert.strictEqual(actual, expected, unit)
    return
  }
  assert.isAtLeast(actual, expected === "several" ? 2 : 1, unit)
  assert.isAtMost(actual, mostAttempts, unit)
}

const checkAcquisition = (
  { attempts, elapsed, error, exit, name, requests }: Acquired
): void => {
  const { outcome }: Scenario.Scenario<Scenario.TokenOutcome> = Scenario.all[name]
  assert.isTrue(Option.isSome(exit), "the run ended")
  // On a busy machine, a lifetime of one second may pass before the token arrives.
  const late = name === "token/expires-in-one" && elapsed >= 1000
    ? [{ error: "TokenExpiredError" }]
    : []
  assert.isTrue(
    [outcome, ...outcome.or ?? [], ...late].some((expected) => isExpected(expected, error)),
    String(error)
  )
  if (outcome.requests === undefined) checkAmount(attempts, outcome.attempts, "attempts")
  else checkAmount(requests.length, outcome.requests, "requests")
}

/** The endpoint is slow, or asks to wait for a second. node:http returns only the first of two equal headers. */
const delayed: ReadonlyArray<TokenName> = [
  "token/slow-answer",
  ...(["seconds", "date", "twice"] as const).flatMap((kind) =>
    ([429, 503] as const).map((status) => `token/${status}-retry-after-${kind}` as const)
  )
]

/** More than the server can write before it detects that the client closed the connection. */
const mostBytes = 16 * 1024 * 1024

// The protected API: the calls of an application, and their expected outcome.

interface Row {
  readonly scenario: Exclude<Scenario.Name, TokenName>
  readonly what: string
  readonly call: (
    actors: Actors
  ) => Effect.Effect<HttpClientResponse.HttpClientResponse, Failure>
  /** The tag of the error, where it is not the outcome of the scenario. */
  readonly error?: string
  /** `fetch` follows redirects and drops the header. The other clients return the redirect to the caller. */
  readonly isFollowedByFetch?: boolean
  readonly options?: Pick<Run, "emulator" | "store">
}

type Failure = Effect.Effect.Error<ReturnType<Actors["authorized"]["get"]>>

const get = ({ authorized }: Actors) => authorized.get("/orders")
const post = ({ authorized }: Actors) =>
  authorized.post("/orders", { body: HttpBody.text("an invented order") })
const getAndFollow = ({ authorized }: Actors) =>
  HttpClient.followRedirects(authorized).get("/orders")
const getElsewhere = ({ authorized, emulator }: Actors) =>
  authorized.get(`${emulator.elsewhere.url}/orders`)

const customHeader = {
  emulator: { header: { name: "X-Store-Token", prefix: "" } },
  store: { client: { header: { name: "X-Store-Token", format: (token: string) => token } } }
}

const isFollowedByFetch = true

const rows: ReadonlyArray<Row> = [
  { scenario: "api/401-once", what: "a GET", call: get },
  { scenario: "api/401-once", what: "a POST", call: post },
  { scenario: "api/401-always", what: "a GET", call: get },
  { scenario: "api/401-hundred-at-once", what: "a GET", call: get },
  { scenario: "api/missing-scope", what: "a GET", call: get },
  { scenario: "api/missing-product", what: "a GET", call: get },
  { scenario: "api/403", what: "a GET", call: get },
  ...([301, 302, 303, 307, 308] as const).flatMap((status): ReadonlyArray<Row> => {
    const scenario = `api/redirect-${status}` as const
    return [
      { scenario, what: "a GET", call: get, isFollowedByFetch },
      { scenario, what: "a POST", call: post, isFollowedByFetch },
      { scenario, what: "a GET with a custom header", call: get, options: customHeader },
      {
        scenario,
        what: "a GET with followRedirects",
        call: getAndFollow,
        error: "UntrustedOriginError",
        isFollowedByFetch
      }
    ]
  }),
  { scenario: "api/redirect-to-http", what: "a GET", call: get, isFollowedByFetch },
  { scenario: "api/pointed-elsewhere", what: "a GET", call: getElsewhere },
  { scenario: "api/only-literal-bearer", what: "a GET", call: get }
]

/** Long enough for a busy machine, since a request that times out would be sent and counted again. */
const timing = { attemptTimeout: 20_000, deadline: 30_000 }

/** Acquires a token, makes the calls of a row, and records their outcome. */
const callApi = (client: Client, row: Row) => {
  const scenario: Scenario.Scenario<Scenario.ApiOutcome> = Scenario.all[row.scenario]
  const { calls = 1 } = scenario.outcome
  return Effect.map(
    observe(
      { client, timing, scenario, ...row.options },
      (actors) =>
        Effect.orDie(actors.provider.get).pipe(
          Effect.zipRight(actors.emulator.clearRequests),
          Effect.zipRight(
            row.call(actors).pipe(
              Effect.flatMap(({ status, text }) => Effect.as(text, status)),
              Effect.exit,
              Effect.replicateEffect(calls, { concurrency: "unbounded" })
            )
          )
        )
    ),
    (run) => ({ ...run, key: `${row.scenario}, ${row.what}, ${client.name}`, client, row })
  )
}

type Called = Effect.Effect.Success<ReturnType<typeof callApi>>

const checkCalls = ({ client, elsewhere, exit, requests, row }: Called): void => {
  const { outcome }: Scenario.Scenario<Scenario.ApiOutcome> = Scenario.all[row.scenario]
  const { calls = 1, error, newTokens, status } = outcome
  assert(Option.isSome(exit), "the run ended")
  assert(Exit.isSuccess(exit.value), String(exit.value))
  const api = requests.filter(({ kind }) => kind === "api")
  if (outcome.calls === undefined) assert.lengthOf(api, outcome.requests)
  else assert.isAtMost(api.length, outcome.requests)
  assert.strictEqual(requests.length - api.length, newTokens, "new tokens")
  const sent = api.flatMap(({ authorization }) => Option.toArray(authorization))
  const tokens = Arr.dedupe(sent.map(Redacted.value))
  assert.lengthOf(tokens, outcome.requests === 0 ? 0 : newTokens + 1, "different tokens")
  const bodies = Arr.dedupe(api.map(({ body }) => Redacted.value(body)))
  assert.isAtMost(bodies.length, 1, "the same body")
  if (row.isFollowedByFetch && client.name === "fetch") return
  const results = exit.value.value.map((exit) =>
    Exit.isSuccess(exit) ? exit.value : failureOf(exit)?._tag
  )
  deepStrictEqual(results, Array(calls).fill(row.error ?? error ?? status))
  assert.lengthOf(elsewhere, 0, "nothing at the other origin")
}

const hasToken = ({ authorization, headers }: RecordedRequest.RecordedRequest): boolean =>
  Option.isSome(authorization) ||
  Object.values(headers).some((value) => typeof value !== "string")

/** Most acquisitions wait. Calls of the API send up to hundreds of requests. */
const concurrency = { acquisitions: 12, calls: 2 }

export const onClients = (clients: ReadonlyArray<Client>): void => {
  const acquisitions = clients.flatMap((client) =>
    plainNames.filter(isTokenName).map((name) => ({ client, name }))
  )
  const calls = clients.flatMap((client) => rows.map((row) => ({ client, row })))
  const runAll = Effect.gen(function*() {
    const unhandled = yield* watchUnhandled
    const acquired = yield* Effect.forEach(
      acquisitions,
      ({ client, name }) => acquire(client, name),
      { concurrency: concurrency.acquisitions }
    )
    const called = yield* Effect.forEach(calls, ({ client, row }) => callApi(client, row), {
      concurrency: concurrency.calls
    })
    return { acquired, called, unhandled: yield* unhandled }
  })

  describe("outcomes", () => {
    let all: Effect.Effect.Success<typeof runAll> = { acquired: [], called: [], unhandled: [] }
    // `layer` of @effect/vitest would replace `it.effect` for every later file of the worker.
    beforeAll(async () => {
      all = await Effect.runPromise(Effect.scoped(runAll))
    })

    /** Checks that no run is wrong. */
    const assertNone = <A extends { readonly key: string }>(
      runs: ReadonlyArray<A>,
      isWrong: (run: A) => boolean
    ) => {
      assert.isNotEmpty(runs)
      deepStrictEqual(runs.filter(isWrong).map(({ key }) => key), [])
    }

    acquisitions.forEach(({ client, name }, index) =>
      it(`${name} has its outcome on ${client.name}`, () => {
        checkAcquisition(all.acquired[index] ?? assert.fail("it did not run"))
      })
    )

    calls.forEach(({ client, row: { scenario, what } }, index) =>
      it(`${scenario} has its outcome for ${what} on ${client.name}`, () => {
        checkCalls(all.called[index] ?? assert.fail("it did not run"))
      })
    )

    it("every acquisition ends within its deadline", () =>
      assertNone(all.acquired, ({ elapsed, timing }) => elapsed >= timing.deadline + margin))

    it("no acquisition ends before the delay of the endpoint", () =>
      assertNone(all.acquired, ({ elapsed, name }) => delayed.includes(name) && elapsed < 990))

    it("every token request is counted as an attempt", () =>
      assertNone(all.acquired, ({ attempts, requests }) => requests.length > attempts))

    it("every request of an acquisition is a token request", () =>
      assertNone(
        all.acquired,
        ({ requests }) => requests.some(({ kind }) => kind !== "token")
      ))

    it("the client stops reading near the size limit", () =>
      assertNone(
        all.acquired,
        ({ requests }) => requests.some(({ sentBytes }) => sentBytes >= mostBytes)
      ))

    it("no acquisition sends a request to the other origin", () =>
      assertNone(all.acquired, ({ elsewhere }) => elsewhere.length > 0))

    it("no call sends the token to the other origin", () =>
      assertNone(all.called, ({ elsewhere }) => elsewhere.some(hasToken)))

    it("no acquisition leaves a socket open", () =>
      assertNone(all.acquired, ({ socketsLeft }) => socketsLeft > 0))

    it("no call leaves a socket open", () =>
      assertNone(all.called, ({ socketsLeft }) => socketsLeft > 0))

    it("there is a row for each scenario of the API", () =>
      assert.sameMembers(
        Arr.dedupe(rows.map(({ scenario }) => scenario)),
        plainNames.filter((name) => !isTokenName(name))
      ))

    it("no failure is unhandled", () => deepStrictEqual(all.unhandled.map(String), []))
  })
}
