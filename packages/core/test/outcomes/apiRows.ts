/** The rows for the protected API: the calls of an application, and their expected outcome. */
import { HttpBody, HttpClient, type HttpClientResponse } from "@effect/platform"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AuthorizedHttpClient } from "@store-api/core"
import { Fault, type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Cause, Effect, Exit, Option, Redacted, Stream } from "effect"
import type { Client } from "../support/clients.js"
import { isFailure } from "../support/effectLine.js"
import { type Actors, describeError, type Observation, observe, type Run } from "./observation.js"

type Result = Exit.Exit<number, AuthorizedHttpClient.Service extends HttpClient.HttpClient.With<infer E> ? E : never>
export type Row = Observation<ReadonlyArray<Result>, never>

export interface ApiRow {
  readonly scenario: Scenario.Name
  readonly what: string
  readonly act: (actors: Actors) => Effect.Effect<ReadonlyArray<Result>>
  readonly check: (seen: Seen) => void
  readonly options?: Pick<Run, "emulator" | "store">
}

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
): Effect.Effect<Result> => Effect.exit(Effect.flatMap(call, (response) => Effect.as(response.text, response.status)))

const get = ({ authorized }: Actors) => Effect.map(once(authorized.get("/orders")), Arr.of)
const post = (body: HttpBody.HttpBody) => ({ authorized }: Actors) =>
  Effect.map(once(authorized.post("/orders", { body })), Arr.of)
const many = (calls: number, concurrency: number) => ({ authorized }: Actors) =>
  Effect.all(Array.from({ length: calls }, () => once(authorized.get("/orders"))), { concurrency })

const text = HttpBody.text("an invented order")
const stream = HttpBody.stream(Stream.make(new TextEncoder().encode("an invented order")))

const renewedOnce = ({ api, newTokens, outcomes, sent }: Seen) => {
  deepStrictEqual([outcomes, api.length, newTokens], [[200], 2, 1])
  assert.lengthOf(Arr.dedupe(sent), 2, "two different tokens")
  assert.lengthOf(Arr.dedupe(api.map(({ body }) => Redacted.value(body))), 1, "the same body")
}

const oneRequest = (status: number) => ({ api, newTokens, outcomes }: Seen) =>
  deepStrictEqual([outcomes, api.length, newTokens], [[status], 1, 0])

/** `fetch` follows redirects and drops the header. The other clients return the redirect to the caller. */
const redirected = (status: number) => ({ api, client, elsewhere, newTokens, outcomes }: Seen) => {
  deepStrictEqual([api.length, newTokens], [1, 0])
  if (client !== "fetch") deepStrictEqual([outcomes, elsewhere], [[status], 0])
}

const customHeader = {
  emulator: { header: { name: "X-Store-Token", prefix: "" } },
  store: { client: { header: { name: "X-Store-Token", format: (token: string) => token } } }
}

export const rows: ReadonlyArray<ApiRow> = [
  { scenario: "api/401-once", what: "a GET", act: get, check: renewedOnce },
  { scenario: "api/401-once", what: "a POST", act: post(text), check: renewedOnce },
  { scenario: "api/401-once", what: "a stream", act: post(stream), check: oneRequest(401) },
  {
    scenario: "api/401-once",
    what: "a GET while the token endpoint limits the rate",
    act: (actors) => Effect.zipRight(actors.emulator.fail(Fault.status(429, { times: Infinity })), get(actors)),
    check: ({ api, newTokens, outcomes }) =>
      deepStrictEqual([outcomes, api.length, newTokens], [["TokenRefusedError (RateLimited)"], 1, 1])
  },
  {
    scenario: "api/401-always",
    what: "one call",
    act: get,
    check: ({ api, newTokens, outcomes }) => deepStrictEqual([outcomes, api.length, newTokens], [[401], 2, 1])
  },
  {
    scenario: "api/401-always",
    what: "a flood of calls",
    act: many(200, 20),
    check: ({ api, elapsed, newTokens, outcomes }) => {
      deepStrictEqual(Arr.dedupe(outcomes), [401])
      assert.isAtMost(api.length, 400)
      assert.isAtLeast(newTokens, 1)
      // Five rejections take effect at once, and one more per minute.
      assert.isAtMost(newTokens, 5 + Math.floor(elapsed / 60_000))
    }
  },
  {
    scenario: "api/401-hundred-at-once",
    what: "a hundred calls",
    act: many(100, 100),
    check: ({ api, newTokens, outcomes, sent }) => {
      deepStrictEqual([Arr.dedupe(outcomes), outcomes.length, newTokens], [[200], 100, 1])
      assert.isAtMost(api.length, 200)
      assert.lengthOf(Arr.dedupe(sent), 2)
    }
  },
  { scenario: "api/missing-scope", what: "a GET", act: get, check: oneRequest(401) },
  { scenario: "api/missing-product", what: "a GET", act: get, check: oneRequest(401) },
  { scenario: "api/403", what: "a GET", act: get, check: oneRequest(403) },
  ...([301, 302, 303, 307, 308] as const).flatMap((status): ReadonlyArray<ApiRow> => [
    { scenario: `api/redirect-${status}`, what: "a GET", act: get, check: redirected(status) },
    { scenario: `api/redirect-${status}`, what: "a POST", act: post(text), check: redirected(status) },
    {
      scenario: `api/redirect-${status}`,
      what: "with a custom header",
      act: get,
      options: customHeader,
      check: ({ elsewhere, outcomes }) => deepStrictEqual([outcomes, elsewhere], [[status], 0])
    },
    {
      scenario: `api/redirect-${status}`,
      what: "with followRedirects",
      act: ({ authorized }) => Effect.map(once(HttpClient.followRedirects(authorized).get("/orders")), Arr.of),
      check: ({ client, elsewhere, outcomes }) => {
        if (client !== "fetch") deepStrictEqual([outcomes, elsewhere], [["UntrustedOriginError"], 0])
      }
    }
  ]),
  { scenario: "api/redirect-to-http", what: "a GET", act: get, check: redirected(302) },
  {
    scenario: "api/pointed-elsewhere",
    what: "a GET",
    act: ({ authorized, emulator }) => Effect.map(once(authorized.get(`${emulator.elsewhere.url}/orders`)), Arr.of),
    check: ({ api, elsewhere, outcomes }) =>
      deepStrictEqual([outcomes, api.length, elsewhere], [["UntrustedOriginError"], 0, 0])
  },
  {
    scenario: "api/only-literal-bearer",
    what: "a GET",
    act: get,
    check: ({ outcomes, sent }) => {
      deepStrictEqual(outcomes, [200])
      assert.isTrue(sent.every((value) => value.startsWith("Bearer ")))
    }
  }
]

/** Long enough for a busy machine, since a request that times out would be sent and counted again. */
const timing = { attemptTimeout: 20_000, deadline: 30_000 }

export const run = ({ act, options, scenario }: ApiRow, client: Client) =>
  observe(
    { client, timing, scenario: Scenario.all[scenario], ...options },
    (actors) =>
      Effect.zipRight(Effect.zipRight(Effect.orDie(actors.provider.get), actors.emulator.clearRequests), act(actors))
  )

/** The number of requests to the other origin that have the token in any header. */
export const withToken = ({ elsewhere }: Row): number =>
  elsewhere.filter(({ authorization, headers }) =>
    Option.isSome(authorization) || Object.values(headers).some((value) => typeof value !== "string")
  ).length

export const check = (row: ApiRow, seen: Row, client: Client): void => {
  assert.isTrue(Option.isSome(seen.exit), "the run ended")
  if (Option.isNone(seen.exit)) return
  assert.isTrue(Exit.isSuccess(seen.exit.value), String(seen.exit.value))
  if (Exit.isFailure(seen.exit.value)) return
  const results = seen.exit.value.value
  for (const result of results) {
    if (Exit.isFailure(result)) assert.isTrue(isFailure(result.cause), Cause.pretty(result.cause))
  }
  row.check({
    outcomes: results.map((result) =>
      Exit.match(result, {
        onSuccess: (status) => status,
        onFailure: (cause) => Option.match(Cause.failureOption(cause), { onNone: () => "", onSome: describeError })
      })
    ),
    api: seen.requests.filter(({ kind }) => kind === "api"),
    newTokens: seen.requests.filter(({ kind }) => kind === "token").length,
    sent: seen.requests.flatMap(({ authorization, kind }) => kind === "api" ? Option.toArray(authorization) : [])
      .map(Redacted.value),
    elsewhere: seen.elsewhere.length,
    elapsed: seen.elapsed,
    client: client.name
  })
  assert.strictEqual(withToken(seen), 0, "the token is not sent to the other origin")
  assert.strictEqual(seen.socketsLeft, 0, "no socket is left")
  assert.isFalse(seen.leaked, "no secret and no token is revealed")
}
