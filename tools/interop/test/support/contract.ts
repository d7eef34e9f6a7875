/** Tests that every server must pass. Each server runs them in a test file of its own. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import type { AccessTokenError } from "@store-api/core"
import { DateTime, Duration, Effect, Option, Redacted, type Scope } from "effect"
import { test } from "../../../../packages/core/test/support/test.js"
import { shared } from "../../../../packages/platform-node/test/support/shared.js"
import {
  type AuthorizationServer,
  type Credentials,
  credentials,
  rawClient,
  type Running
} from "../../src/AuthorizationServer.js"
import { assertHidden, assertRejected, call, callApi, client, counted, report, requestToken } from "./client.js"
import { underLoad } from "./load.js"

/** The expected fields of `TokenRefusedError`. */
export interface Refusal {
  readonly reason: AccessTokenError.TokenRefusedError["reason"]
  readonly status: number
  readonly code: string
}

/** Something that a server does in its own way: a sentence for the page, and the test of it. */
export interface Quirk {
  readonly says: string
  readonly holds: (running: Running) => Effect.Effect<void, unknown, Scope.Scope>
}

export interface ContractOptions {
  /** The server's response to a wrong secret and to an unknown client; `"accepted"` if it does not check them. */
  readonly refusal?: Refusal | "accepted" | undefined
  readonly quirks: ReadonlyArray<Quirk>
}

const invalidClient: Refusal = { reason: "InvalidClient", status: 401, code: "invalid_client" }

/** In seconds. Long enough that nothing expires during the tests that share a server. */
const life = 600

const callersAtRevocation = 32

const kindOf = (value: string) => value.split(".").length === 3 && value.startsWith("ey") ? "JWT" : "opaque"

/** Declares the tests of one server. */
export const contract = (server: AuthorizationServer, { quirks, refusal = invalidClient }: ContractOptions): void => {
  const facts: Record<"token" | "fields" | "wrong secret" | "unknown client", string> = {
    "token": "",
    "fields": "",
    "wrong secret": "",
    "unknown client": ""
  }

  describe(`${server.name} ${server.version}`, () => {
    const started = shared(server.start({ life }))

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
      const told = Duration.toSeconds(DateTime.distanceDuration(held.acquiredAt, held.expiresAt))
      // Some servers send the remaining lifetime of a token that was issued a moment before.
      assert.closeTo(told, life, 1)
      assert.closeTo(sent.expires_in, life, 1)
      assert.strictEqual(kindOf(Redacted.value(held.value)), kindOf(sent.access_token))
      assert.isTrue(
        [held.applicationName, held.developerEmail, held.issuedAt, held.clientId].every((field) =>
          Option.isNone<unknown>(field)
        ),
        "the specification's own fields, which no other server sends"
      )
      facts.token = kindOf(sent.access_token)
      facts.fields = Object.keys(sent).sort().map((field) => `\`${field}\``).join(", ")
    })

    const wrong: ReadonlyArray<readonly ["wrong secret" | "unknown client", string, Credentials]> = [
      ["wrong secret", "a", { ...credentials, clientSecret: Redacted.make("another-invented-secret") }],
      ["unknown client", "an", { ...credentials, clientId: "no-such-client" }]
    ]
    for (const [what, article, given] of wrong) {
      if (refusal === "accepted") {
        test.live(`${article} ${what} is accepted, because the server does not check it`, function*() {
          assert.strictEqual(yield* call(yield* client(yield* started, given)), 200)
          facts[what] = "accepted: not checked"
        })
      } else {
        test.live(`${article} ${what} is refused with ${refusal.reason}, and no secret is shown`, function*() {
          const running = yield* started
          const asking = yield* counted(running, Effect.flip(call(yield* client(running, given))))
          const error = asking.result
          assert(error._tag === "TokenRefusedError")
          const { code, reason, status } = error
          assert.deepStrictEqual({ reason, status, code: Option.getOrElse(code, () => "") }, refusal)
          assert.strictEqual(asking.calls, 0, "no call goes out without a token")
          assert.strictEqual(asking.tokenRequests, 1, "a refusal is not repeated")
          assertHidden(error, [given.clientSecret, credentials.clientSecret])
          facts[what] = `\`${reason}\`: ${status}, ${refusal.code === "" ? "no code" : `\`${refusal.code}\``}`
        })
      }
    }

    if (server.revocation.offered) {
      it.scopedLive(
        `a token revoked under ${callersAtRevocation} callers: none of them sees it, one more token request`,
        () => Effect.flatMap(started, revokedUnderCallers)
      )
    }

    for (const { holds, says } of quirks) {
      it.scopedLive(says, () =>
        Effect.flatMap(started, holds).pipe(
          Effect.zipRight(report("quirks", { server: server.name, quirk: says }))
        ))
    }

    underLoad(server)

    afterAll(() =>
      Effect.runPromise(report("servers", {
        "server": server.name,
        "version": server.version,
        "token": facts.token,
        "fields of the response": facts.fields,
        "the resource": server.checks,
        "revocation": server.revocation.how,
        "wrong secret": facts["wrong secret"],
        "unknown client": facts["unknown client"]
      }))
    )
  })
}

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

/** For servers that decode the body as a form, although the specification sends it raw. */
export const decodesTheForm: Quirk = {
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
export const countsWholeSeconds = (server: AuthorizationServer): Quirk => ({
  says: "counts whole seconds: a token expires up to a second before `expires_in` has passed",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* server.start({ life: shortLife })
      // A late response, as on a busy machine, proves nothing.
      const seen = yield* Effect.repeat(deadEarly(running), { until: Option.isSome })
      assert.deepStrictEqual(Option.getOrThrow(seen), [200, 401])
    })
})
