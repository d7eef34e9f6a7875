/** What every server must do with the library, also under load, and what each does in its own way. */
import { assert, describe } from "@effect/vitest"
import type { AccessToken, AccessTokenError } from "@store-api/core"
import { DateTime, Duration, Effect, Option, Record, Redacted, type Scope } from "effect"
import { test } from "../../../packages/core/test/support/test.js"
import { shared } from "../../../packages/platform-node/test/utils.js"
import { isLeftOut } from "../src/Program.js"
import * as servers from "../src/servers.js"
import { assertHidden, assertRejected, call, callApi, type Client, client, requestToken } from "./support.js"

type Running = servers.Running

/** Something that a server does in its own way, in a sentence, and the test of it. */
type Quirk = readonly [says: string, holds: (running: Running) => Effect.Effect<unknown, unknown, Scope.Scope>]

/** For servers that decode the body as a form, although the specification sends it raw. */
const decodesTheForm: Quirk = [
  "form-decodes the body: a secret with `+` or `%`, sent raw as specified, is refused, and the error says why",
  (running) =>
    Effect.gen(function*() {
      yield* requestToken(running, servers.rawClient) // encoded: the secret is correct
      const error = yield* Effect.flip((yield* client(running, servers.rawClient)).provider.get)
      assert.deepInclude(error, { ...refused, reason: "InvalidClient", changedByFormDecoding: true })
      assert.include(error.message, "contain + or %")
    })
]

const untilWallClock = (millis: number) => Effect.suspend(() => Effect.sleep(Math.max(0, millis - Date.now())))

/**
 * Requests a token of two seconds late in a second, and calls with it at once and at its end. Returns nothing if it
 * took too long.
 */
const deadEarly = (running: Running) =>
  Effect.gen(function*() {
    const second = (millis: number) => Math.floor(millis / 1000) * 1000
    yield* untilWallClock(second(Date.now()) + 1600)
    const asked = Date.now()
    const { access_token, expires_in } = yield* requestToken(running)
    if (second(Date.now()) !== second(asked)) return Option.none()
    assert.strictEqual(expires_in, 2)
    const young = yield* callApi(running, access_token)
    yield* untilWallClock(second(asked) + 2010)
    const old = yield* callApi(running, access_token)
    return Date.now() - asked < 2000 ? Option.some([young.status, old.status]) : Option.none()
  })

/** Causes an occasional 401: the client counts from its own request, the server in whole seconds. */
const countsWholeSeconds = (server: servers.AuthorizationServer): Quirk => [
  "counts whole seconds: a token expires up to a second before `expires_in` has passed",
  () =>
    Effect.gen(function*() {
      const running = yield* server.start(2)
      // A late response, as on a busy machine, proves nothing.
      const seen = yield* Effect.repeat(deadEarly(running), { until: Option.isSome })
      assert.deepStrictEqual(Option.getOrThrow(seen), [200, 401])
    })
]

const roundsDown: Quirk = [
  "sends the remaining lifetime in `expires_in`, rounded down: 2 for a token of 2.5 s",
  () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* requestToken(yield* servers.nodeOAuth2Server.start(2.5))).expires_in, 2)
    })
]

const tellsNoLife: Quirk = [
  "sends no `expires_in` when less than a second is left: the library assumes 60 minutes, until a 401 replaces the token",
  () =>
    Effect.gen(function*() {
      const running = yield* servers.nodeOAuth2Server.start(0.9)
      const store = yield* client(running)
      const token = yield* store.provider.get
      assert.strictEqual(secondsOf(token), 3600)
      yield* Effect.sleep("1 second")
      assert.strictEqual((yield* callApi(running, Redacted.value(token.value))).status, 401)
      assert.strictEqual(yield* call(store), 200)
      assert.notStrictEqual(Redacted.value((yield* store.provider.get).value), Redacted.value(token.value))
    })
]

const revokesNothing: Quirk = [
  "responds with 200 to a revocation, but the token stays valid",
  (running) =>
    Effect.gen(function*() {
      const { access_token } = yield* requestToken(running)
      yield* Effect.promise(() => servers.postForm(`${running.authUrl}/revoke`, { token: access_token }))
      assert.strictEqual((yield* callApi(running, access_token)).status, 200)
    })
]

const wantsScope: Quirk = [
  "needs a `scope`, which the specification does not send: without one it responds with 403 and no code; nginx adds it",
  ({ authUrl, ...running }) =>
    Effect.gen(function*() {
      const { provider } = yield* client({ ...running, authUrl: `${authUrl}/bare` })
      assert.deepInclude(yield* Effect.flip(provider.get), withoutCode)
    })
]

const secondsOf = ({ acquiredAt, expiresAt }: AccessToken.AccessToken) =>
  Duration.toSeconds(DateTime.distanceDuration(acquiredAt, expiresAt))

type Refusal = Partial<AccessTokenError.TokenRefusedError>

/** The fields of the error for a wrong secret and for an unknown client. */
const refused = { _tag: "TokenRefusedError" } as const
const invalidClient: Refusal = { ...refused, reason: "InvalidClient", status: 401, code: Option.some("invalid_client") }
const withoutCode: Refusal = { ...refused, reason: "Other", status: 403, code: Option.none() }

interface Expected {
  readonly server: servers.AuthorizationServer
  readonly token: "opaque" | "JWT"
  readonly sendsScope?: boolean
  /** None if the server does not check the credentials. */
  readonly refusal?: Refusal
  readonly cannotRevoke?: boolean
  readonly quirks: ReadonlyArray<Quirk>
}

const all: ReadonlyArray<Expected> = [
  {
    ...{ server: servers.oidcProvider, token: "opaque", refusal: invalidClient },
    quirks: [decodesTheForm, countsWholeSeconds(servers.oidcProvider)]
  },
  {
    // It responds with 401 only to credentials in a header, as RFC 6749 §5.2 allows.
    ...{ server: servers.nodeOAuth2Server, token: "opaque", refusal: { ...invalidClient, status: 400 } },
    quirks: [roundsDown, tellsNoLife]
  },
  {
    ...{ server: servers.oauth2MockServer, token: "JWT", cannotRevoke: true },
    quirks: [revokesNothing, countsWholeSeconds(servers.oauth2MockServer)]
  },
  {
    ...{ server: servers.djangoOAuthToolkit, token: "opaque", sendsScope: true, refusal: invalidClient },
    quirks: [decodesTheForm]
  },
  {
    ...{ server: servers.glewlwyd, token: "JWT", sendsScope: true, refusal: withoutCode },
    quirks: [wantsScope, countsWholeSeconds(servers.glewlwyd)]
  }
]

/** How much the counts grow during an effect. */
const counted = <A, E, R>({ counts }: Running, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = yield* counts
    const result = yield* effect
    return { result, ...Record.map(yield* counts, (count, name) => count - before[name]) }
  })

/** The lifetime in seconds of the tokens that the tests share: long enough that nothing expires. */
const life = 600

const kindOf = (value: string) => value.split(".").length === 3 && value.startsWith("ey") ? "JWT" : "opaque"

const revokedUnderCallers = (running: Running) =>
  Effect.gen(function*() {
    const callers = 32
    const store = yield* client(running)
    const token = Effect.map(store.provider.get, ({ value }) => Redacted.value(value))
    const revoke = running.revoke ?? (() => Effect.dieMessage("The server offers no revocation."))
    const revoked = yield* token
    let revokedAt = Infinity
    let calls = 0
    // Each caller stops after its third call after the revocation.
    const caller = Effect.gen(function*() {
      for (let left = 3; left > 0;) {
        const began = performance.now()
        assert.strictEqual(yield* call(store), 200)
        calls++
        if (began > revokedAt) left--
      }
    })
    const revoking = Effect.gen(function*() {
      while (calls < callers) yield* Effect.sleep("5 millis")
      yield* revoke(revoked)
      revokedAt = performance.now()
    })
    const together = [revoking, ...Array.from({ length: callers }, () => caller)]
    const during = yield* counted(running, Effect.all(together, { concurrency: "unbounded" }))
    assert.strictEqual(during.tokenRequests, 1)
    assert.isAtLeast(during.unauthorized, 1, "one caller got the 401")
    assert.strictEqual(during.calls, calls + during.unauthorized)
    yield* assertRejected(running, revoked)
    assert.notStrictEqual(yield* token, revoked)
  })

/** The lifetime of a token under load, in seconds. Short enough that several expire. */
const short = 3

const callers = 36

const leastCalls = 1000

/** Calls for at least four lifetimes, however fast the calls are. Fails if a call fails; any status is a success. */
const load = (store: Client) =>
  Effect.gen(function*() {
    const statuses: Array<number> = []
    /** The lifetimes as reported, in seconds, by the token's value: some servers round the remaining lifetime down. */
    const lives = new Map<string, number>()
    const start = performance.now()
    const caller = Effect.gen(function*() {
      statuses.push(yield* call(store))
      const token = yield* store.provider.get
      lives.set(Redacted.value(token.value), secondsOf(token))
      // The pause keeps the server busy, which shares its process with other tests, without overloading it.
      yield* Effect.sleep("400 millis")
    }).pipe(Effect.repeat({ until: () => statuses.length >= leastCalls && performance.now() - start >= 4000 * short }))
    // One after the other, so that their connections do not open all at once.
    const joining = Array.from({ length: callers }, (_, index) => Effect.delay(caller, 50 * index))
    yield* Effect.all(joining, { concurrency: "unbounded" })
    return { statuses, seconds: (performance.now() - start) / 1000, lives: [...lives.values()] }
  })

for (const { quirks, server: { name, programs, start }, token, ...expected } of all) {
  const { cannotRevoke = false, refusal, sendsScope = false } = expected

  describe.skipIf(programs.some(isLeftOut))(name, () => {
    const started = shared(start(life))

    test.live("grants a token, and the call with it goes through; without, and with another, it does not", function*() {
      const running = yield* started
      const calling = yield* counted(running, Effect.replicateEffect(call(yield* client(running)), 3))
      assert.deepStrictEqual(calling, { result: [200, 200, 200], calls: 3, tokenRequests: 1, unauthorized: 0 })
      assert.strictEqual((yield* callApi(running)).status, 401)
      yield* assertRejected(running, "an-invented-token")
    })

    test.live("the token is what the server said", function*() {
      const running = yield* started
      const sent = yield* requestToken(running)
      const held = yield* (yield* client(running)).provider.get
      assert.strictEqual(held.tokenType, "Bearer")
      assert.strictEqual(sent.token_type.toLowerCase(), "bearer")
      assert.strictEqual(held.scope, sent.scope ?? "")
      assert.strictEqual(sent.scope !== undefined, sendsScope)
      // Some servers send the remaining lifetime of a token that was issued a moment before.
      assert.closeTo(secondsOf(held), life, 1)
      assert.closeTo(sent.expires_in, life, 1)
      assert.deepStrictEqual([kindOf(sent.access_token), kindOf(Redacted.value(held.value))], [token, token])
      // The specification's own fields, which no other server sends.
      for (const field of [held.applicationName, held.developerEmail, held.issuedAt, held.clientId]) {
        assert.isTrue(Option.isNone<unknown>(field))
      }
    })

    test.live.each([
      { what: "a wrong secret", change: { clientSecret: Redacted.make("another-invented-secret") } },
      { what: "an unknown client", change: { clientId: "no-such-client" } }
    ])("$what is refused with a typed error that shows no secret, if the server checks it", function*({ change }) {
      const running = yield* started
      const given = { ...servers.credentials, ...change }
      const caller = yield* client(running, given)
      if (refusal === undefined) {
        assert.strictEqual(yield* call(caller), 200)
        return
      }
      const { calls, result: error, tokenRequests } = yield* counted(running, Effect.flip(call(caller)))
      assert.deepInclude(error, refusal)
      assert.deepStrictEqual({ calls, tokenRequests }, { calls: 0, tokenRequests: 1 })
      assertHidden(error, [given.clientSecret, servers.credentials.clientSecret])
    })

    test.live("a token that can be revoked, under many callers: none of them sees it, one more token request", function*() {
      const running = yield* started
      assert.strictEqual(running.revoke === undefined, cannotRevoke)
      if (!cannotRevoke) yield* revokedUnderCallers(running)
    })

    for (const [says, holds] of quirks) {
      test.live(says, function*() {
        yield* holds(yield* started)
      })
    }

    test.live(
      `${callers} callers, at least ${leastCalls} calls, tokens of ${short} s: no call ends with a 401`,
      function*() {
        const running = yield* start(short)
        const first = yield* requestToken(running)
        const { calls, result, tokenRequests, unauthorized } = yield* counted(running, load(yield* client(running)))
        const { lives, seconds, statuses } = result
        // Only a call that takes twice the lifetime of a token can see two tokens expire.
        assert.deepStrictEqual(statuses.filter((status) => status !== 200), [])
        assert.strictEqual(calls, statuses.length + unauthorized, "a call is repeated after a 401, once")

        const longest = Math.max(...lives)
        assert.isAtLeast(Math.min(...lives), short - 1)
        assert.isAtMost(longest, short)
        const average = lives.reduce((sum, life) => sum + life, 0) / lives.length
        // By default, at most a quarter of the lifetime is left when a token is renewed.
        assert.isAtMost(tokenRequests, Math.ceil(seconds / (average * 0.75)) + 1)
        assert.isAtLeast(tokenRequests, Math.floor(seconds / longest), "each token ended")
        yield* assertRejected(running, first.access_token)
      },
      180_000
    )
  })
}
