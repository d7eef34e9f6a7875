/** The rows of the protected API: what an application calls, and what must come of it. */
import { HttpBody, HttpClient, type HttpClientResponse } from "@effect/platform"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AuthorizedHttpClient } from "@store-api/core"
import { type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Cause, Effect, Exit, Option, Redacted, Stream } from "effect"
import type { Client } from "./clients.js"
import * as Expectation from "./expectation.js"
import { type Actors, type Observation, observe, type Run } from "./observation.js"

type Answer = Exit.Exit<number, AuthorizedHttpClient.Service extends HttpClient.HttpClient.With<infer E> ? E : never>
export type Row = Observation<ReadonlyArray<Answer>, never>

export interface ApiRow {
  readonly scenario: Scenario.Name
  readonly what: string
  readonly act: (actors: Actors) => Effect.Effect<ReadonlyArray<Answer>>
  readonly check: (seen: Seen) => void
  readonly options?: Pick<Run, "emulator" | "store">
}

interface Seen {
  /** A status, or the tag of an error, for each call. */
  readonly outcomes: ReadonlyArray<number | string>
  readonly api: ReadonlyArray<RecordedRequest.RecordedRequest>
  /** Token requests, without the one for the first token. */
  readonly newTokens: number
  /** Values of the header, as they were sent. */
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
): Effect.Effect<Answer> => Effect.exit(Effect.flatMap(call, (response) => Effect.as(response.text, response.status)))

const get = ({ authorized }: Actors) => Effect.map(once(authorized.get("/orders")), Arr.of)
const post = (body: HttpBody.HttpBody) => ({ authorized }: Actors) =>
  Effect.map(once(authorized.post("/orders", { body })), Arr.of)
const many = (calls: number, concurrency: number) => ({ authorized }: Actors) =>
  Effect.all(Array.from({ length: calls }, () => once(authorized.get("/orders"))), { concurrency })

const text = HttpBody.text("an invented order")
const stream = HttpBody.stream(Stream.make(new TextEncoder().encode("an invented order")))

const renewedOnce = ({ api, newTokens, outcomes, sent }: Seen) => {
  deepStrictEqual([outcomes, api.length, newTokens], [[200], 2, 1])
  assert.lengthOf(Arr.dedupe(sent), 2, "another token")
  assert.lengthOf(Arr.dedupe(api.map(({ body }) => Redacted.value(body))), 1, "the same body")
}

const oneRequest = (status: number) => ({ api, newTokens, outcomes }: Seen) =>
  deepStrictEqual([outcomes, api.length, newTokens], [[status], 1, 0])

/** `fetch` follows by itself, and drops the header; the others give the redirect to the caller. */
const redirected = (status: number) => ({ api, client, elsewhere, newTokens, outcomes }: Seen) => {
  deepStrictEqual([api.length, newTokens], [1, 0])
  if (client !== "fetch") deepStrictEqual([outcomes, elsewhere], [[status], 0])
}

const ownHeader = {
  emulator: { header: { name: "X-Store-Token", prefix: "" } },
  store: { client: { header: { name: "X-Store-Token", format: (token: string) => token } } }
}

export const rows: ReadonlyArray<ApiRow> = [
  { scenario: "api/401-once", what: "a GET", act: get, check: renewedOnce },
  { scenario: "api/401-once", what: "a POST", act: post(text), check: renewedOnce },
  { scenario: "api/401-once", what: "a stream", act: post(stream), check: oneRequest(401) },
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
      // A cooldown is a second at least; it is longer only where a call came within it.
      assert.isAtMost(newTokens, 1 + Math.floor(elapsed / 1000))
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
      what: "with a header of its own",
      act: get,
      options: ownHeader,
      check: ({ elsewhere, outcomes }) => deepStrictEqual([outcomes, elsewhere], [[status], 0])
    },
    {
      scenario: `api/redirect-${status}`,
      what: "under followRedirects",
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

/** Long enough for a busy machine: a request that is given up would be counted twice. */
const timing = { attemptTimeout: 20_000, deadline: 30_000 }

export const run = ({ act, options, scenario }: ApiRow, client: Client) =>
  observe(
    { client, timing, scenario: Scenario.all[scenario], ...options },
    (actors) =>
      Effect.zipRight(Effect.zipRight(Effect.orDie(actors.provider.get), actors.emulator.clearRequests), act(actors))
  )

/** Requests at the other origin that carry the token, anywhere. */
export const withToken = ({ elsewhere }: Row): number =>
  elsewhere.filter(({ authorization, headers }) =>
    Option.isSome(authorization) || Object.values(headers).some((value) => typeof value !== "string")
  ).length

export const check = (row: ApiRow, seen: Row, client: Client): void => {
  assert.isTrue(Option.isSome(seen.exit), "it ended")
  if (Option.isNone(seen.exit)) return
  assert.isTrue(Exit.isSuccess(seen.exit.value), String(seen.exit.value))
  if (Exit.isFailure(seen.exit.value)) return
  const answers = seen.exit.value.value
  for (const answer of answers) {
    if (Exit.isFailure(answer)) assert.strictEqual(answer.cause._tag, "Fail", Cause.pretty(answer.cause))
  }
  row.check({
    outcomes: answers.map((answer) =>
      Exit.match(answer, {
        onSuccess: (status) => status,
        onFailure: (cause) =>
          Option.match(Cause.failureOption(cause), { onNone: () => "", onSome: Expectation.describe })
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
  assert.strictEqual(withToken(seen), 0, "the token does not travel")
  assert.strictEqual(seen.socketsLeft, 0, "no socket is left")
  assert.isFalse(seen.leaked, "no secret and no token shows")
}
