/** What every server must do with the library, and what each does in its own way. */
import { assert, describe } from "@effect/vitest"
import { DateTime, Duration, Effect, Option, Redacted, type Scope } from "effect"
import { test } from "../../../packages/core/test/support/test.js"
import { shared } from "../../../packages/platform-node/test/utils.js"
import { type AuthorizationServer, credentials, postForm, rawClient, type Running } from "../src/AuthorizationServer.js"
import { isLeftOut } from "../src/Program.js"
import * as servers from "../src/servers.js"
import { assertHidden, assertRejected, call, callApi, client, counted, inOwnProcess, requestToken } from "./support.js"

/** Something that a server does in its own way, in a sentence, and the test of it. */
interface Quirk {
  readonly says: string
  readonly holds: (running: Running) => Effect.Effect<void, unknown, Scope.Scope>
}

/** For servers that decode the body as a form, although the specification sends it raw. */
const decodesTheForm: Quirk = {
  says: "form-decodes the body: a secret with `+` or `%`, sent raw as specified, is refused, and the error says why",
  holds: (running) =>
    Effect.gen(function*() {
      yield* requestToken(running, rawClient) // encoded: the secret is correct
      const error = yield* Effect.flip((yield* client(running, rawClient)).provider.get)
      assert(error._tag === "TokenRefusedError")
      assert.strictEqual(error.reason, "InvalidClient")
      assert.isTrue(error.changedByFormDecoding)
      assert.include(error.message, "contain + or %")
    })
}

/** In seconds. */
const shortLife = 2

const second = (millis: number) => Math.floor(millis / 1000)

const untilWallClock = (millis: number) => Effect.suspend(() => Effect.sleep(Math.max(0, millis - Date.now())))

/** Requests a token late in a second, and calls with it at once and at its end. Returns nothing if it took too long. */
const deadEarly = (running: Running) =>
  Effect.gen(function*() {
    yield* untilWallClock(second(Date.now()) * 1000 + 1600)
    const asked = Date.now()
    const { access_token, expires_in } = yield* requestToken(running)
    if (second(Date.now()) !== second(asked)) return Option.none()
    assert.strictEqual(expires_in, shortLife)
    const young = yield* callApi(running, access_token)
    yield* untilWallClock((second(asked) + shortLife) * 1000 + 10)
    const old = yield* callApi(running, access_token)
    return Date.now() - asked < shortLife * 1000 ? Option.some([young.status, old.status]) : Option.none()
  })

/** Causes an occasional 401: the client counts from its own request, the server in whole seconds. */
const countsWholeSeconds = (server: AuthorizationServer): Quirk => ({
  says: "counts whole seconds: a token expires up to a second before `expires_in` has passed",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* server.start(shortLife)
      // A late response, as on a busy machine, proves nothing.
      const seen = yield* Effect.repeat(deadEarly(running), { until: Option.isSome })
      assert.deepStrictEqual(Option.getOrThrow(seen), [200, 401])
    })
})

const roundsDown: Quirk = {
  says: "sends the remaining lifetime in `expires_in`, rounded down: 2 for a token of 2.5 s",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* servers.nodeOAuth2Server.start(2.5)
      assert.strictEqual((yield* requestToken(running)).expires_in, 2)
    })
}

const tellsNoLife: Quirk = {
  says:
    "sends no `expires_in` when less than a second is left: the library assumes 60 minutes, until a 401 replaces the token",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* servers.nodeOAuth2Server.start(0.9)
      const store = yield* client(running)
      const { acquiredAt, expiresAt, value } = yield* store.provider.get
      assert.strictEqual(Duration.toHours(DateTime.distanceDuration(acquiredAt, expiresAt)), 1)
      yield* Effect.sleep("1 second")
      assert.strictEqual((yield* callApi(running, Redacted.value(value))).status, 401)
      assert.strictEqual(yield* call(store), 200)
      assert.notStrictEqual(Redacted.value((yield* store.provider.get).value), Redacted.value(value))
    })
}

const revokesNothing: Quirk = {
  says: "responds with 200 to a revocation, but the token stays valid",
  holds: (running) =>
    Effect.gen(function*() {
      const { access_token } = yield* requestToken(running)
      yield* Effect.promise(() => postForm(`${running.authUrl}/revoke`, { token: access_token }))
      assert.strictEqual((yield* callApi(running, access_token)).status, 200)
    })
}

/** The fields of the error for a wrong secret and for an unknown client. */
const invalidClient = { reason: "InvalidClient", status: 401, code: "invalid_client" }
const withoutCode = { reason: "Other", status: 403, code: "" } as const

const wantsScope: Quirk = {
  says:
    "needs a `scope`, which the specification does not send: without one it responds with 403 and no code; nginx adds it",
  holds: () =>
    Effect.gen(function*() {
      const { provider } = yield* client(yield* servers.glewlwydWithoutScope.start(600))
      const { reason, status } = withoutCode
      assert.deepInclude(yield* Effect.flip(provider.get), { _tag: "TokenRefusedError", reason, status })
    })
}

interface Expected {
  readonly server: Exclude<keyof typeof servers, "glewlwydWithoutScope">
  readonly token: "opaque" | "JWT"
  readonly sendsScope: boolean
  readonly refusal: typeof invalidClient | "accepted"
  readonly canRevoke: boolean
  readonly quirks: ReadonlyArray<Quirk>
}

const all: ReadonlyArray<Expected> = [
  {
    ...{ server: "oidcProvider", token: "opaque", sendsScope: false, refusal: invalidClient, canRevoke: true },
    quirks: [decodesTheForm, countsWholeSeconds(servers.oidcProvider)]
  },
  {
    ...{ server: "nodeOAuth2Server", token: "opaque", sendsScope: false, canRevoke: true },
    // It responds with 401 only to credentials in a header, as RFC 6749 §5.2 allows.
    refusal: { ...invalidClient, status: 400 },
    quirks: [roundsDown, tellsNoLife]
  },
  {
    ...{ server: "oauth2MockServer", token: "JWT", sendsScope: false, refusal: "accepted", canRevoke: false },
    quirks: [revokesNothing, countsWholeSeconds(servers.oauth2MockServer)]
  },
  {
    ...{ server: "djangoOAuthToolkit", token: "opaque", sendsScope: true, refusal: invalidClient, canRevoke: true },
    quirks: [decodesTheForm]
  },
  {
    ...{ server: "glewlwyd", token: "JWT", sendsScope: true, refusal: withoutCode, canRevoke: true },
    quirks: [wantsScope, countsWholeSeconds(servers.glewlwyd)]
  }
]

/** In seconds. Long enough that nothing expires during the tests that share a server. */
const life = 600

const callersAtRevocation = 32

const kindOf = (value: string) => value.split(".").length === 3 && value.startsWith("ey") ? "JWT" : "opaque"

const revokedUnderCallers = (running: Running) =>
  Effect.gen(function*() {
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
      while (calls < callersAtRevocation) yield* Effect.sleep("5 millis")
      yield* revoke(revoked)
      revokedAt = performance.now()
    })
    const callers = Array.from({ length: callersAtRevocation }, () => caller)
    const during = yield* counted(running, Effect.all([revoking, ...callers], { concurrency: "unbounded" }))
    assert.strictEqual(during.tokenRequests, 1)
    assert.isAtLeast(during.unauthorized, 1, "one caller got the 401")
    assert.strictEqual(during.calls, calls + during.unauthorized)
    yield* assertRejected(running, revoked)
    assert.notStrictEqual(yield* token, revoked)
  })

for (const { canRevoke, quirks, refusal, sendsScope, server, token } of all) {
  const { name, programs = [] } = servers[server]
  describe.skipIf(programs.some(isLeftOut))(name, () => {
    const started = shared(inOwnProcess(server, life))

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
      assert.closeTo(Duration.toSeconds(DateTime.distanceDuration(held.acquiredAt, held.expiresAt)), life, 1)
      assert.closeTo(sent.expires_in, life, 1)
      assert.deepStrictEqual([kindOf(sent.access_token), kindOf(Redacted.value(held.value))], [token, token])
      // The specification's own fields, which no other server sends.
      for (const field of [held.applicationName, held.developerEmail, held.issuedAt, held.clientId]) {
        assert.isTrue(Option.isNone<unknown>(field))
      }
    })

    test.live.each([
      { what: "a wrong secret", given: { ...credentials, clientSecret: Redacted.make("another-invented-secret") } },
      { what: "an unknown client", given: { ...credentials, clientId: "no-such-client" } }
    ])("$what is refused with a typed error that shows no secret, if the server checks it", function*({ given }) {
      const running = yield* started
      const caller = yield* client(running, given)
      if (refusal === "accepted") {
        assert.strictEqual(yield* call(caller), 200)
        return
      }
      const { calls, result: error, tokenRequests } = yield* counted(running, Effect.flip(call(caller)))
      assert(error._tag === "TokenRefusedError")
      const { code, reason, status } = error
      assert.deepStrictEqual({ reason, status, code: Option.getOrElse(code, () => "") }, refusal)
      assert.deepStrictEqual({ calls, tokenRequests }, { calls: 0, tokenRequests: 1 })
      assertHidden(error, [given.clientSecret, credentials.clientSecret])
    })

    test.live("a token that can be revoked, under many callers: none of them sees it, one more token request", function*() {
      const running = yield* started
      assert.strictEqual(running.revoke !== undefined, canRevoke)
      if (canRevoke) yield* revokedUnderCallers(running)
    })

    for (const { holds, says } of quirks) {
      test.live(says, function*() {
        yield* holds(yield* started)
      })
    }
  })
}
