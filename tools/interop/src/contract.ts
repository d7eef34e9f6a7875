/** Tests that every server must pass. Each server runs them in a test file of its own. */
import { afterAll, assert, describe, it, layer } from "@effect/vitest"
import { type AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, DateTime, Duration, Effect, Layer, Option, Redacted, type Scope } from "effect"
import type { AuthorizationServer, Credentials, Running } from "./AuthorizationServer.js"
import { callers, leastCalls, load } from "./load.js"
import { report } from "./page.js"
import { shows } from "./renderings.js"
import { callApi, requestToken } from "./wire.js"

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
  /** The server's response to a wrong secret; `"accepted"` if it does not check it. */
  readonly wrongSecret?: Refusal | "accepted" | undefined
  /** The server's response to an unknown client. */
  readonly unknownClient?: Refusal | "accepted" | undefined
  readonly quirks?: ReadonlyArray<Quirk> | undefined
}

const invalidClient: Refusal = { reason: "InvalidClient", status: 401, code: "invalid_client" }

/** In seconds. Long enough that nothing expires during the other tests. */
const longLife = 600

/** In seconds. Short enough to expire often under load. */
const shortLife = 3

/** The provider's default: at most this part of the lifetime is left when a token is renewed. */
const refreshAhead = 0.25

const callersAtRevocation = 32

type Product = AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient

/** The library as an application uses it. */
export const storeAuth = (
  { apiUrl, authUrl }: Running,
  { clientId, clientSecret }: Credentials
): Layer.Layer<Product, AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError> =>
  NodeStoreAuth.layer({ authUrl, apiUrl, clientId, clientSecret })

class Server extends Context.Tag("@store-api/interop/Server")<Server, Running>() {}

/** Runs a test with the server that a group of tests shares, and its own instance of the library. */
const withProduct = <A, E>(use: (running: Running) => Effect.Effect<A, E, Product>) =>
  Effect.flatMap(Server, (running) => Effect.provide(use(running), storeAuth(running, running.credentials)))

const call = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get("/v1/orders")
  yield* response.text
  return response.status
})

const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get)

/** How much a server's counts grow during an effect. */
const counted = <A, E, R>({ calls, tokenRequests, unauthorized }: Running, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const counts = Effect.all({ calls, tokenRequests, unauthorized })
    const before = yield* counts
    const result = yield* effect
    const after = yield* counts
    return {
      result,
      calls: after.calls - before.calls,
      tokenRequests: after.tokenRequests - before.tokenRequests,
      unauthorized: after.unauthorized - before.unauthorized
    }
  })

const assertChallenge = ({ challenge, status }: { readonly challenge: string; readonly status: number }) => {
  assert.strictEqual(status, 401)
  assert.match(challenge, /^Bearer\b.*\berror="?invalid_token"?/)
}

const kindOf = (value: string) => value.split(".").length === 3 && value.startsWith("ey") ? "JWT" : "opaque"

type Facts = Record<"token" | "answer" | "wrong secret" | "unknown client", string>

/** Tests that share one server. */
interface Shared {
  readonly effect: (title: string, test: () => Effect.Effect<void, unknown, Server>) => void
}

const grant = (it: Shared, facts: Partial<Facts>) => {
  it.effect("grants a token, and the call with it goes through; without, and with another, it does not", () =>
    withProduct((running) =>
      Effect.gen(function*() {
        const calling = yield* counted(running, Effect.replicateEffect(call, 3))
        assert.deepStrictEqual(calling, { result: [200, 200, 200], calls: 3, tokenRequests: 1, unauthorized: 0 })
        assert.strictEqual((yield* callApi(running)).status, 401)
        assertChallenge(yield* callApi(running, Redacted.make("an-invented-token")))
      })
    ))

  it.effect("the token is what the server said", () =>
    withProduct((running) =>
      Effect.gen(function*() {
        const wire = yield* requestToken(running)
        const held = yield* token
        assert.strictEqual(held.tokenType, "Bearer")
        assert.strictEqual(wire.tokenType.toLowerCase(), "bearer")
        assert.strictEqual(held.scope, wire.scope)
        const told = Duration.toSeconds(DateTime.distanceDuration(held.acquiredAt, held.expiresAt))
        // Some servers send the remaining lifetime of a token that was issued a moment before.
        assert.closeTo(told, longLife, 1)
        assert.closeTo(wire.expiresIn, longLife, 1)
        assert.strictEqual(kindOf(Redacted.value(held.value)), kindOf(Redacted.value(wire.value)))
        assert.isTrue(
          [held.applicationName, held.developerEmail, held.issuedAt, held.clientId].every((field) =>
            Option.isNone<unknown>(field)
          ),
          "the specification's own fields, which no other server sends"
        )
        facts.token = kindOf(Redacted.value(held.value))
        facts.answer = wire.fields.map((field) => `\`${field}\``).join(", ")
      })
    ))
}

const refused = (
  it: Shared,
  title: string,
  expected: Refusal | "accepted",
  found: (fact: string) => void,
  credentialsOf: (running: Running) => Credentials
) => {
  const ask = Effect.gen(function*() {
    const running = yield* Server
    const credentials = credentialsOf(running)
    return { running, credentials, product: storeAuth(running, credentials) }
  })
  if (expected === "accepted") {
    it.effect(`${title} is accepted, because the server does not check it`, () =>
      Effect.gen(function*() {
        const { product } = yield* ask
        assert.strictEqual(yield* Effect.provide(call, product), 200)
        found("accepted: not checked")
      }))
    return
  }
  it.effect(`${title} is refused with ${expected.reason}, and no secret is shown`, () =>
    Effect.gen(function*() {
      const { credentials, product, running } = yield* ask
      const asking = yield* counted(running, Effect.provide(Effect.flip(call), product))
      const error = asking.result
      assert.strictEqual(error._tag, "TokenRefusedError")
      if (error._tag !== "TokenRefusedError") return
      const { code, reason, status } = error
      assert.deepStrictEqual({ reason, status, code: Option.getOrElse(code, () => "") }, expected)
      assert.strictEqual(asking.calls, 0, "no call goes out without a token")
      assert.strictEqual(asking.tokenRequests, 1, "a refusal is not repeated")
      for (const secret of [credentials.clientSecret, running.credentials.clientSecret].map(Redacted.value)) {
        assert.isFalse(shows(error, secret))
        assert.isTrue(shows(Object.assign(new Error("control"), { said: secret }), secret))
      }
      found(`\`${reason}\`: ${status}, ${expected.code === "" ? "no code" : `\`${expected.code}\``}`)
    }))
}

const revocation = (it: Shared) => {
  it.effect(`a token revoked under ${callersAtRevocation} callers: none of them sees it, one more token request`, () =>
    withProduct((running) =>
      Effect.gen(function*() {
        const revoke = running.revoke ?? (() => Effect.dieMessage("The server offers no revocation."))
        const revoked = yield* token
        let revokedAt = Infinity
        let calls = 0
        // Each caller stops after its third call after the revocation.
        const caller = (after: number): Effect.Effect<void, unknown, AuthorizedHttpClient.AuthorizedHttpClient> =>
          Effect.gen(function*() {
            const began = performance.now()
            assert.strictEqual(yield* call, 200)
            calls++
            const left = began > revokedAt ? after - 1 : after
            if (left > 0) yield* caller(left)
          })
        const revoking = Effect.gen(function*() {
          while (calls < callersAtRevocation) yield* Effect.sleep("5 millis")
          yield* revoke(revoked.value)
          revokedAt = performance.now()
        })
        const meanwhile = yield* counted(
          running,
          Effect.all([revoking, ...Array.from({ length: callersAtRevocation }, () => caller(3))], {
            concurrency: "unbounded"
          })
        )
        assert.strictEqual(meanwhile.tokenRequests, 1)
        assert.isAtLeast(meanwhile.unauthorized, 1, "one caller got the 401")
        assert.strictEqual(meanwhile.calls, calls + meanwhile.unauthorized)
        assertChallenge(yield* callApi(running, revoked.value))
        assert.notStrictEqual(Redacted.value((yield* token).value), Redacted.value(revoked.value))
      })
    ))
}

const underLoad = (server: AuthorizationServer) => {
  it.scopedLive(
    `${callers} callers, at least ${leastCalls} calls, tokens of ${shortLife} s: no call ends with a 401`,
    () =>
      Effect.gen(function*() {
        const running = yield* server.start({ life: shortLife })
        const first = yield* requestToken(running)
        const { calls, result, tokenRequests, unauthorized } = yield* counted(
          running,
          Effect.provide(load, storeAuth(running, running.credentials))
        )
        const { lives, others, seconds } = result
        const slowest = `${Math.round(result.slowest)} ms`
        assert.isAtLeast(result.calls, leastCalls)
        // Only a call that takes twice the lifetime of a token can see two tokens expire.
        assert.strictEqual(result.unauthorized, 0, `the slowest call took ${slowest}`)
        assert.deepStrictEqual(others, [])
        assert.strictEqual(calls, result.calls + unauthorized, "a call is repeated after a 401, once")

        // The lifetimes as reported: some servers round the remaining lifetime down.
        const told = [...lives.values()]
        const [shortest, longest] = [Math.min(...told), Math.max(...told)]
        assert.isAtLeast(shortest, shortLife - 1)
        assert.isAtMost(longest, shortLife)
        const life = told.reduce((sum, life) => sum + life, 0) / told.length
        const allowed = Math.ceil(seconds / (life * (1 - refreshAhead))) + 1
        assert.isAtMost(tokenRequests, allowed)
        assert.isAtLeast(tokenRequests, Math.floor(seconds / longest), "each token ended")
        assertChallenge(yield* callApi(running, first.value))

        yield* report("load", {
          server: server.name,
          callers: `${callers}`,
          calls: result.calls.toLocaleString("en"),
          "401 seen by callers": `${result.unauthorized}`,
          "slowest call": slowest,
          "401 at the resource, call repeated": `${unauthorized}`,
          seconds: seconds.toFixed(1),
          "reported lifetime": shortest === longest ? `${longest} s` : `${shortest} to ${longest} s`,
          "token requests": `${tokenRequests}`,
          allowed: `${allowed}`
        })
      }),
    180_000
  )
}

/** Declares the tests of one server. */
export const contract = (server: AuthorizationServer, options: ContractOptions = {}): void => {
  const { quirks = [], unknownClient = invalidClient, wrongSecret = invalidClient } = options
  const facts: Partial<Facts> = {}
  const shared = Layer.scoped(Server, server.start({ life: longLife }))

  describe(`${server.name} ${server.version}`, () => {
    layer(shared, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
      grant(it, facts)
      refused(it, "a wrong secret", wrongSecret, (fact) => facts["wrong secret"] = fact, ({ credentials }) => ({
        ...credentials,
        clientSecret: Redacted.make("another-invented-secret")
      }))
      refused(it, "an unknown client", unknownClient, (fact) => facts["unknown client"] = fact, ({ credentials }) => ({
        ...credentials,
        clientId: "no-such-client"
      }))
      if (server.revocation.offered) revocation(it)
      for (const { holds, says } of quirks) {
        it.scoped(says, () =>
          Effect.gen(function*() {
            yield* holds(yield* Server)
            yield* report("quirks", { server: server.name, quirk: says })
          }))
      }
    })

    underLoad(server)

    afterAll(() =>
      Effect.runPromise(report("servers", {
        server: server.name,
        version: server.version,
        token: facts.token ?? "",
        "fields of the response": facts.answer ?? "",
        "the resource": server.checks,
        revocation: server.revocation.how,
        "wrong secret": facts["wrong secret"] ?? "",
        "unknown client": facts["unknown client"] ?? ""
      }))
    )
  })
}
