/**
 * Declares the tests of the library against every scenario of the emulator, with the given HTTP clients. All scenarios
 * run concurrently before the tests. Each test checks the outcome of one.
 */
import { HttpBody, HttpClient, type HttpClientResponse } from "@effect/platform"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessToken, AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { type RecordedRequest, Scenario } from "@store-api/emulator"
import { isFailure } from "@store-api/testing/effectLine"
import { Array as Arr, Cause, DateTime, Effect, Exit, Option, Redacted } from "effect"
import type { Client } from "../support/clients.js"
import { watchUnhandled } from "../support/telemetry.js"
import {
  type Actors,
  describeError,
  margin,
  type Observation,
  observe,
  type Run,
  type Timing
} from "./observation.js"

// The token endpoint: each scenario, once per client.

type TokenName = Extract<Scenario.Name, `token/${string}`>

const isTokenName = (name: Scenario.Name): name is TokenName => name.startsWith("token/")

const tokenNames = Scenario.names.filter(isTokenName)

type TokenRow = Observation<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

/** The first attempt and five retries. */
const mostAttempts = 6

/** Short attempts where a timeout is expected, and always enough time for all attempts, even if the machine pauses. */
const timing = (outcome: Scenario.TokenOutcome): Timing => ({
  attemptTimeout: [outcome, ...outcome.or ?? []].some(({ reason }) => reason === "Timeout")
    ? 150
    : 10_000,
  deadline: 30_000
})

const isExpected = (
  { error = "a token", reason }: Partial<Scenario.Failure>,
  actual: Option.Option<AccessTokenError.AccessTokenError>
): boolean =>
  Option.match(actual, {
    onNone: () => error === "a token",
    onSome: (actual) =>
      error === actual._tag &&
      (reason === undefined || ("reason" in actual && reason === actual.reason))
  })

const checkAmount = (
  actual: number,
  expected: number | "several" | undefined,
  unit: string
) => {
  const [least, most] = typeof expected === "number"
    ? [expected, expected]
    : [expected === "several" ? 2 : 1, mostAttempts]
  assert.isAtLeast(actual, least, unit)
  assert.isAtMost(actual, most, unit)
}

const runToken = (name: TokenName, client: Client) =>
  observe(
    { client, scenario: Scenario.all[name], timing: timing(Scenario.all[name].outcome) },
    ({ provider }) => provider.get
  )

/** The least duration of a scenario with a delay. */
const leastMillis = (name: string): number =>
  // If a header is sent twice, node:http returns only the first one.
  /retry-after-(seconds|date|twice)$|slow-answer$/.test(name) ? 990 : 0

/** More than the server can write before it detects that the client closed the connection. */
const mostBytes = 16 * 1024 * 1024

const checkToken = (name: TokenName, row: TokenRow): void => {
  const { outcome }: Scenario.Scenario<Scenario.TokenOutcome> = Scenario.all[name]
  const { deadline } = timing(outcome)
  assert.isTrue(Option.isSome(row.exit), "the run ended")
  if (Option.isNone(row.exit)) return
  const exit = row.exit.value
  if (Exit.isFailure(exit)) assert.isTrue(isFailure(exit.cause), Cause.pretty(exit.cause))

  const error = Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : Option.none()
  // On a busy machine, a lifetime of one second may pass before the token arrives.
  const late = name === "token/expires-in-one" && row.elapsed >= 1000
    ? [{ error: "TokenExpiredError" }]
    : []
  const actual = Option.match(error, { onNone: () => "a token", onSome: describeError })
  assert.isTrue(
    [outcome, ...outcome.or ?? [], ...late].some((expected) => isExpected(expected, error)),
    actual
  )
  assert.isBelow(row.elapsed, deadline + margin, "within the deadline")
  assert.isAtLeast(row.elapsed, leastMillis(name), "not before the delay")

  const attempts = Option.match(error, {
    onNone: () => row.requests.length,
    onSome: (error) =>
      error._tag === "TokenRequestError" ? error.attempts : row.requests.length
  })
  if (outcome.requests !== undefined) {
    checkAmount(row.requests.length, outcome.requests, "requests")
  } else checkAmount(attempts, outcome.attempts, "attempts")
  assert.isAtMost(row.requests.length, attempts, "every request is counted as an attempt")
  assert.isTrue(
    row.requests.every(({ kind }) => kind === "token"),
    "all requests are token requests"
  )
  assert.isBelow(
    Math.max(0, ...row.requests.map(({ sentBytes }) => sentBytes)),
    mostBytes,
    "the client stops reading near the size limit"
  )

  assert.lengthOf(row.elsewhere, 0, "nothing at the other origin")
  assert.strictEqual(row.socketsLeft, 0, "no socket is left")
  if (name.endsWith("retry-after-year")) {
    const { retryAt } = Option.getOrThrow(error)
    assert(retryAt !== undefined)
    assert.isAbove(
      retryAt.epochMillis,
      DateTime.unsafeNow().epochMillis,
      "retryAt is in the future"
    )
  }
}

// The protected API: the calls of an application, and their expected outcome.

type Result = Exit.Exit<
  number,
  AuthorizedHttpClient.Service extends HttpClient.HttpClient.With<infer E> ? E : never
>
type SeenRow = Observation<ReadonlyArray<Result>, never>

type ApiName = Exclude<Scenario.Name, TokenName>

type Row = readonly [
  scenario: ApiName,
  what: string,
  act: (actors: Actors) => Effect.Effect<ReadonlyArray<Result>>,
  check: (seen: Seen, outcome: Scenario.ApiOutcome) => void,
  options?: Pick<Run, "emulator" | "store">
]

interface Seen {
  /** A status, or the tag of an error, for each call. */
  readonly outcomes: ReadonlyArray<number | string>
  readonly api: ReadonlyArray<RecordedRequest.RecordedRequest>
  /** The number of token requests after the first token. */
  readonly newTokens: number
  /** The values of the header with the token, as sent. */
  readonly sent: ReadonlyArray<string>
  readonly elsewhere: number
  readonly elapsed: number
  readonly client: string
}

const once = (
  call: Effect.Effect<
    HttpClientResponse.HttpClientResponse,
    Effect.Effect.Error<ReturnType<Actors["authorized"]["get"]>>
  >
): Effect.Effect<Result> =>
  Effect.exit(Effect.flatMap(call, (response) => Effect.as(response.text, response.status)))

const get = ({ authorized }: Actors) => Effect.map(once(authorized.get("/orders")), Arr.of)
const post = (body: HttpBody.HttpBody) => ({ authorized }: Actors) =>
  Effect.map(once(authorized.post("/orders", { body })), Arr.of)
const hundred = ({ authorized }: Actors) =>
  Effect.all(Effect.replicate(once(authorized.get("/orders")), 100), {
    concurrency: "unbounded"
  })

const followed = ({ authorized }: Actors) =>
  Effect.map(once(HttpClient.followRedirects(authorized).get("/orders")), Arr.of)
const elsewhere = ({ authorized, emulator }: Actors) =>
  Effect.map(once(authorized.get(`${emulator.elsewhere.url}/orders`)), Arr.of)
const text = HttpBody.text("an invented order")

type Check = Row[3]

const resultOf = ({ error, status }: Scenario.ApiOutcome) => error ?? status

/** The outcome of one call, and the number of API requests and of new tokens. */
const counts: Check = ({ api, newTokens, outcomes }, outcome) =>
  deepStrictEqual([outcomes, api.length, newTokens], [
    [resultOf(outcome)],
    outcome.requests,
    outcome.newTokens
  ])

const renewedOnce: Check = (seen, outcome) => {
  counts(seen, outcome)
  assert.lengthOf(Arr.dedupe(seen.sent), 2, "two different tokens")
  assert.lengthOf(
    Arr.dedupe(seen.api.map(({ body }) => Redacted.value(body))),
    1,
    "the same body"
  )
}

const notElsewhere: Check = ({ elsewhere, outcomes }, outcome) =>
  deepStrictEqual([outcomes, elsewhere], [[resultOf(outcome)], 0])

/** `fetch` follows redirects and drops the header. The other clients return the redirect to the caller. */
const unlessFetch = (check: Check): Check => (seen, outcome) => {
  deepStrictEqual([seen.api.length, seen.newTokens], [outcome.requests, outcome.newTokens])
  if (seen.client !== "fetch") check(seen, outcome)
}

/** A client that follows redirects gets an error instead of the status. */
const refusedToFollow: Check = ({ elsewhere, outcomes }) =>
  deepStrictEqual([outcomes, elsewhere], [["UntrustedOriginError"], 0])

const customHeader = {
  emulator: { header: { name: "X-Store-Token", prefix: "" } },
  store: { client: { header: { name: "X-Store-Token", format: (token: string) => token } } }
}

const apiRows: ReadonlyArray<Row> = [
  ["api/401-once", "a GET", get, renewedOnce],
  ["api/401-once", "a POST", post(text), renewedOnce],
  ["api/401-always", "one call", get, counts],
  [
    "api/401-hundred-at-once",
    "a hundred calls",
    hundred,
    ({ api, newTokens, outcomes, sent }, outcome) => {
      deepStrictEqual(
        [Arr.dedupe(outcomes), outcomes.length, newTokens],
        [[outcome.status], outcome.calls, outcome.newTokens]
      )
      assert.isAtMost(api.length, outcome.requests)
      assert.lengthOf(Arr.dedupe(sent), 2)
    }
  ],
  ["api/missing-scope", "a GET", get, counts],
  ["api/missing-product", "a GET", get, counts],
  ["api/403", "a GET", get, counts],
  ...([301, 302, 303, 307, 308] as const).flatMap((status): ReadonlyArray<Row> => [
    [`api/redirect-${status}`, "a GET", get, unlessFetch(notElsewhere)],
    [`api/redirect-${status}`, "a POST", post(text), unlessFetch(notElsewhere)],
    [`api/redirect-${status}`, "with a custom header", get, notElsewhere, customHeader],
    [`api/redirect-${status}`, "with followRedirects", followed, unlessFetch(refusedToFollow)]
  ]),
  ["api/redirect-to-http", "a GET", get, unlessFetch(notElsewhere)],
  ["api/pointed-elsewhere", "a GET", elsewhere, (seen, outcome) => {
    notElsewhere(seen, outcome)
    counts(seen, outcome)
  }],
  ["api/only-literal-bearer", "a GET", get, (seen, outcome) => {
    counts(seen, outcome)
    assert.isTrue(seen.sent.every((value) => value.startsWith("Bearer ")))
  }]
]

/** Long enough for a busy machine, since a request that times out would be sent and counted again. */
const apiTiming = { attemptTimeout: 20_000, deadline: 30_000 }

const runApi = ([scenario, , act, , options]: Row, client: Client) =>
  observe(
    { client, timing: apiTiming, scenario: Scenario.all[scenario], ...options },
    (actors) =>
      Effect.zipRight(
        Effect.zipRight(Effect.orDie(actors.provider.get), actors.emulator.clearRequests),
        act(actors)
      )
  )

/** The number of requests to the other origin that have the token in any header. */
const withToken = ({ elsewhere }: SeenRow): number =>
  elsewhere.filter(({ authorization, headers }) =>
    Option.isSome(authorization) ||
    Object.values(headers).some((value) => typeof value !== "string")
  ).length

const checkApi = ([scenario, , , check]: Row, seen: SeenRow, client: Client): void => {
  assert.isTrue(Option.isSome(seen.exit), "the run ended")
  if (Option.isNone(seen.exit)) return
  assert.isTrue(Exit.isSuccess(seen.exit.value), String(seen.exit.value))
  if (Exit.isFailure(seen.exit.value)) return
  const results = seen.exit.value.value
  for (const result of results) {
    if (Exit.isFailure(result)) {
      assert.isTrue(isFailure(result.cause), Cause.pretty(result.cause))
    }
  }
  check({
    outcomes: results.map((result) =>
      Exit.match(result, {
        onSuccess: (status) => status,
        onFailure: (cause) =>
          Option.match(Cause.failureOption(cause), { onNone: () => "", onSome: describeError })
      })
    ),
    api: seen.requests.filter(({ kind }) => kind === "api"),
    newTokens: seen.requests.filter(({ kind }) => kind === "token").length,
    sent: seen.requests.flatMap(({ authorization, kind }) =>
      kind === "api" ? Option.toArray(authorization) : []
    )
      .map(Redacted.value),
    elsewhere: seen.elsewhere.length,
    elapsed: seen.elapsed,
    client: client.name
  }, Scenario.all[scenario].outcome)
  assert.strictEqual(withToken(seen), 0, "the token is not sent to the other origin")
  assert.strictEqual(seen.socketsLeft, 0, "no socket is left")
}

interface All {
  readonly token: ReadonlyMap<string, TokenRow>
  readonly api: ReadonlyMap<string, SeenRow>
  readonly unhandled: ReadonlyArray<unknown>
}

/** Most runs of the token endpoint wait. Runs of the API send up to hundreds of requests. */
const concurrency = { token: 12, api: 2 }

const collect = <Run extends { readonly key: string }, A, E>(
  runs: ReadonlyArray<Run>,
  concurrency: number,
  observe: (run: Run) => Effect.Effect<A, E>
) =>
  Effect.map(
    Effect.forEach(runs, (run) => Effect.map(observe(run), (row) => [run.key, row] as const), {
      concurrency
    }),
    (rows) => new Map(rows)
  )

const rowOf = <A>(rows: ReadonlyMap<string, A>, key: string): A => {
  const row = rows.get(key)
  assert.isDefined(row)
  return row
}

export const onClients = (clients: ReadonlyArray<Client>): void => {
  const tokenRuns = clients.flatMap((client) =>
    tokenNames.map((name) => ({ key: `${name}, ${client.name}`, name, client }))
  )
  const apiRuns = clients.flatMap((client) =>
    apiRows.map((row) => ({ key: `${row[0]}, ${row[1]}, ${client.name}`, row, client }))
  )
  const observations = Effect.gen(function*() {
    const unhandled = yield* watchUnhandled
    const token = yield* collect(
      tokenRuns,
      concurrency.token,
      ({ client, name }) => runToken(name, client)
    )
    const api = yield* collect(
      apiRuns,
      concurrency.api,
      ({ client, row }) => runApi(row, client)
    )
    return { token, api, unhandled: yield* unhandled }
  })

  describe("outcomes", () => {
    let all: All = { token: new Map(), api: new Map(), unhandled: [] }
    // `layer` of @effect/vitest would replace `it.effect` for every later file of the worker.
    beforeAll(async () => {
      all = await Effect.runPromise(Effect.scoped(observations))
    }, 180_000)

    for (const { key, name } of tokenRuns) {
      it(`${key}: ${Scenario.describeOutcome(Scenario.all[name].outcome)}`, () =>
        checkToken(name, rowOf(all.token, key)))
    }
    for (const { client, key, row } of apiRuns) {
      it(`${key}: ${Scenario.describeOutcome(Scenario.all[row[0]].outcome)}`, () =>
        checkApi(row, rowOf(all.api, key), client))
    }
    it("there is a row for each scenario of the API", () =>
      assert.sameMembers(
        [...new Set(apiRows.map(([scenario]) => scenario))],
        Scenario.names.filter((name) => name.startsWith("api/"))
      ))
    it("no rejection and no exception was unhandled", () =>
      deepStrictEqual(all.unhandled.map(String), []))
  })
}
