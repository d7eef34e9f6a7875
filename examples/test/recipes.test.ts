import { HttpApiClient, HttpApp, HttpLayerRouter } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  TokenSource
} from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import {
  Clock,
  ConfigProvider,
  Context,
  DateTime,
  Effect,
  Exit,
  Layer,
  Option,
  Redacted,
  Ref,
  Scope,
  Stream,
  TestClock
} from "effect"
import { plainStoreClient, StoreApi, storeClient } from "../src/declared/api.js"
import * as DeclaredServer from "../src/declared/server.js"
// The tests run the code of docs/guides/recipes.md.
import { StoreAuthBehindGateway } from "../src/recipes/forbidden.js"
import { health } from "../src/recipes/health.js"
import { retryingClient } from "../src/recipes/retry.js"
import { Stores } from "../src/recipes/stores.js"
import { KeepWarm, StoreAuthLive, tokens } from "../src/recipes/warm.js"
import { tokenRequests, variablesOf } from "./support/program.js"

const token = (value: string) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
    }))

const refused = new AccessTokenError.TokenRefusedError({
  reason: "InvalidClient",
  httpStatus: 401
})

/** A provider over a source that calls a function with the number of each acquisition. */
const provider = (
  answer: (
    n: number
  ) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: AccessTokenProvider.layer().pipe(
      Layer.provide(
        TokenSource.layer(() => Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), answer))
      ),
      Layer.orDie
    )
  }))

describe("recipes", () => {
  it.scopedLive("warm-up: building the layer acquires a token; wrong credentials fail it, and an outage does not", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const build = (secret: Redacted.Redacted) =>
        Effect.exit(Effect.scoped(Layer.build(StoreAuthLive))).pipe(
          Effect.withConfigProvider(ConfigProvider.fromMap(
            new Map(
              Object.entries({
                ...variablesOf(emulator),
                STORE_API_CLIENT_SECRET: Redacted.value(secret)
              })
            )
          ))
        )
      const good = yield* build(Emulator.demoClient.clientSecret)
      assert.isTrue(Exit.isSuccess(good))
      assert.strictEqual((yield* emulator.tokens).length, 1)
      const bad = yield* Effect.flip(yield* build(Redacted.make("another invented secret")))
      assert.strictEqual(bad._tag, "TokenRefusedError")
      yield* emulator.fail(Fault.status(429))
      assert.isTrue(Exit.isSuccess(yield* build(Emulator.demoClient.clientSecret)))
      assert.strictEqual(
        (yield* emulator.tokens).length,
        1,
        "no token was acquired in the outage"
      )
    }))

  it.scopedLive("retry API errors: the authorized client repeats a GET after a 503, with the same token", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      yield* emulator.fail(Fault.status(503, { on: "api", times: 2 }))
      const get = Effect.flatMap(retryingClient, (client) => client.get("/orders"))
      const auth = NodeStoreAuth.layer({
        ...Emulator.demoClient,
        authUrl: emulator.url,
        apiUrl: emulator.url,
        http: { proxy: "none" }
      })
      assert.strictEqual((yield* Effect.provide(get, auth)).status, 200)
      const requests = yield* emulator.requests
      deepStrictEqual(requests.map(({ kind }) => kind), ["token", "api", "api", "api"])
    }))

  const statusBehindGateway = (body: string) =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      yield* emulator.fail(Fault.status(403, { on: "api", body }))
      const context = yield* Layer.build(StoreAuthBehindGateway).pipe(
        Effect.withConfigProvider(
          ConfigProvider.fromMap(new Map(Object.entries(variablesOf(emulator))))
        )
      )
      const client = Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
      const { status } = yield* client.get("/orders")
      return [status, (yield* emulator.tokens).length]
    })

  it.scopedLive("behind a gateway, a 403 that says that the token has expired replaces the token", () =>
    Effect.gen(function*() {
      deepStrictEqual(yield* statusBehindGateway(`{"message":"The token has expired"}`), [
        200,
        2
      ])
    }))

  it.scopedLive("behind a gateway, another 403 is the response", () =>
    Effect.gen(function*() {
      deepStrictEqual(yield* statusBehindGateway(`{"message":"Not for you"}`), [403, 1])
    }))

  it.effect("keep warm: renews without calls, continues after a defect, and ends with the layer", () =>
    Effect.gen(function*() {
      const source = yield* provider((n) =>
        n === 2 ? Effect.die("an invented defect") : token(`token-${n}`)
      )
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        Layer.provideMerge(KeepWarm, source.layer),
        scope
      )
      yield* TestClock.adjust("54 minutes")
      assert.strictEqual(yield* source.calls, 1)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual(yield* source.calls, 3, "a renewal that failed, and one that did not")
      const { current } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      assert.isTrue(Option.isSome(yield* current), "at 60 minutes a valid token is cached")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("10 hours")
      assert.strictEqual(yield* source.calls, 3)
    }))

  it.effect("a stream of tokens: has each token once, few looks, and goes on after an outage until its scope closes", () =>
    Effect.gen(function*() {
      const minutes = Effect.map(Clock.currentTimeMillis, (now) => now / 60_000)
      const outage = new AccessTokenError.TokenRequestError({
        reason: "Transport",
        attempts: 6
      })
      // The third token is due at 112 minutes, and the second one expires at 116.
      const source = yield* provider((n) =>
        Effect.flatMap(
          minutes,
          (now) => now > 100 && now < 117 ? Effect.fail(outage) : token(`token-${n}`)
        )
      )
      const looks = yield* Ref.make(0)
      const counted = Effect.map(AccessTokenProvider.AccessTokenProvider, (provider) => ({
        ...provider,
        get: Effect.zipRight(Ref.update(looks, (n) => n + 1), provider.get)
      }))
      const times = yield* Ref.make<ReadonlyArray<number>>([])
      const scope = yield* Scope.make()
      yield* Stream.runForEach(
        tokens,
        () => Effect.flatMap(minutes, (now) => Ref.update(times, (all) => [...all, now]))
      )
        .pipe(
          Effect.provideServiceEffect(AccessTokenProvider.AccessTokenProvider, counted),
          Effect.provide(yield* Layer.buildWithScope(source.layer, scope)),
          Effect.forkIn(scope)
        )
      yield* Effect.repeatN(TestClock.adjust("5 minutes"), 23)
      const [first, second = 0, third = 0, ...more] = yield* Ref.get(times)
      deepStrictEqual([first, more], [0, []])
      assert.isTrue(second >= 56 && second <= 57, `${second}`)
      assert.isTrue(third >= 117 && third < 118, `${third}`)
      const looked = yield* Ref.get(looks)
      assert.isBelow(looked, 150, "one look in three seconds of the outage on average")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("2 hours")
      deepStrictEqual([(yield* Ref.get(times)).length, yield* Ref.get(looks)], [3, looked])

      const bad = yield* provider(() => Effect.fail(refused))
      const error = yield* Effect.flip(Effect.provide(Stream.runDrain(tokens), bad.layer))
      assert.strictEqual(error._tag, "TokenRefusedError")
    }))

  it.effect("health: liveness sends no request, readiness acquires a token, and neither shows a secret", () =>
    Effect.gen(function*() {
      const asking = (layer: Layer.Layer<AccessTokenProvider.AccessTokenProvider>) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const runtime = yield* Effect.provide(
            Effect.runtime<AccessTokenProvider.AccessTokenProvider>(),
            yield* Layer.buildWithScope(layer, scope)
          )
          const routes = yield* Scope.extend(HttpLayerRouter.toHttpEffect(health), scope)
          const handler = HttpApp.toWebHandlerRuntime(runtime)(routes)
          const ask = (path: string) =>
            Effect.promise(async () => {
              const response = await handler(new Request(`http://localhost${path}`))
              return [response.status, await response.text()] as const
            })
          return { ask, close: Scope.close(scope, Exit.void) }
        })
      const state = (name: string, error: string | null = null) =>
        `"state":"${name}".*"error":${JSON.stringify(error)}`
      const is = (
        [status, body]: readonly [number, string],
        expected: number,
        pattern: string
      ) => {
        assert.strictEqual(status, expected, body)
        assert.match(body, new RegExp(pattern))
        assert.notInclude(body, "canary")
      }

      const good = yield* provider(() => token("an-invented-canary"))
      const one = yield* asking(good.layer)
      is(yield* one.ask("/health"), 200, state("Empty"))
      assert.strictEqual(yield* good.calls, 0, "no request was sent")
      is(yield* one.ask("/ready"), 200, "expiresAt")
      is(yield* one.ask("/health"), 200, state("Fresh"))
      assert.strictEqual(yield* good.calls, 1)
      yield* one.close
      is(yield* one.ask("/health"), 503, state("Closed"))
      is(yield* one.ask("/ready"), 503, "TokenRequestError")

      const bad = yield* provider(() => Effect.fail(refused))
      const other = yield* asking(bad.layer)
      is(yield* other.ask("/ready"), 503, "TokenRefusedError")
      is(yield* other.ask("/health"), 200, state("Empty", "TokenRefusedError"))
      is(yield* other.ask("/ready"), 503, "TokenRefusedError")
      assert.strictEqual(yield* bad.calls, 1, "nothing is sent in the cooldown")
      // The cooldown is over, and the endpoint is unchanged.
      yield* TestClock.adjust("2 minutes")
      is(yield* other.ask("/health"), 200, state("Empty"))
      is(yield* other.ask("/ready"), 503, "TokenRefusedError")
      assert.strictEqual(yield* bad.calls, 2)
      is(yield* other.ask("/health"), 200, state("Empty", "TokenRefusedError"))
      yield* other.close
    }))
})

describe("several stores in one process", () => {
  /** Starts two token services, and returns the variables of the two stores. */
  const twoStores = Effect.gen(function*() {
    const north = yield* Emulator.make()
    const south = yield* Emulator.make()
    const variables = { ...variablesOf(north, "NORTH"), ...variablesOf(south, "SOUTH") }
    const config = ConfigProvider.fromMap(new Map(Object.entries(variables)))
    return { north, south, config: Layer.setConfigProvider(config) }
  })

  const authorizations = (emulator: Emulator.Service) =>
    Effect.map(
      emulator.requests,
      (requests) =>
        new Set(
          requests.filter(({ kind }) => kind === "api").map(({ authorization }) =>
            Option.getOrElse(Option.map(authorization, Redacted.value), () => "none")
          )
        )
    )

  const call = Effect.flatMap(
    AuthorizedHttpClient.AuthorizedHttpClient,
    (client) => client.get("/orders")
  )

  it.scoped("keys share no token, acquisition or cooldown; the uses of one key share all of them", () =>
    Effect.gen(function*() {
      const { config, north, south } = yield* twoStores
      // The south refuses every token request of its first two acquisitions.
      yield* south.fail(Fault.status(400, { times: 50 }))
      yield* Effect.gen(function*() {
        const calls = Array.from(
          { length: 50 },
          () => Effect.provide(call, Stores.get("north"))
        )
        const failing = Array.from(
          { length: 50 },
          () => Effect.flip(Effect.provide(call, Stores.get("south")))
        )
        const [responses, errors] = yield* Effect.all([
          Effect.all(calls, { concurrency: "unbounded" }),
          Effect.all(failing, { concurrency: "unbounded" })
        ], { concurrency: "unbounded" })
        assert.isTrue(responses.every(({ status }) => status === 200))
        assert.isTrue(errors.every(({ _tag }) => _tag === "TokenRefusedError"))
        assert.strictEqual(yield* tokenRequests(north), 1)
        assert.strictEqual(
          yield* tokenRequests(south),
          1,
          "one acquisition, and its cooldown for the other callers"
        )
        yield* Effect.provide(call, Stores.get("north"))
        assert.strictEqual(yield* tokenRequests(north), 1, "kept between uses")
        assert.strictEqual(
          (yield* authorizations(south)).size,
          0,
          "no call of the south went out without a token"
        )
        // When its service is back and its cooldown is over, the south gets its own token.
        yield* south.clearFaults
        yield* TestClock.adjust("1 minute")
        yield* Effect.provide(call, Stores.get("south"))
      }).pipe(Effect.provide(Layer.provide(Stores.Default, config)))
      const [ofNorth, ofSouth] = [yield* authorizations(north), yield* authorizations(south)]
      assert.strictEqual(ofNorth.size, 1)
      assert.strictEqual(ofSouth.size, 1)
      assert.isFalse([...ofSouth].some((token) => ofNorth.has(token)), "each its own")
    }))
})

const declared = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const { apiUrl, orders } = yield* DeclaredServer.make(emulator)
  const auth = NodeStoreAuth.layer({
    authUrl: emulator.url,
    apiUrl,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret,
    http: { proxy: "none" }
  })
  return { apiUrl, auth, emulator, orders }
})

describe("a declared API: its server and its derived client", () => {
  it.scopedLive("the client over AuthorizedHttpClient calls it, and outlives a revocation, a POST included", () =>
    Effect.gen(function*() {
      const { auth, emulator, orders } = yield* declared
      yield* Effect.gen(function*() {
        const client = yield* storeClient
        assert.strictEqual((yield* client.orders.list()).length, 0)
        yield* emulator.revoke()
        const placed = yield* client.orders.place({ payload: { item: "a chair" } })
        assert.strictEqual(placed.item, "a chair")
        assert.strictEqual((yield* client.orders.list()).length, 1)
        assert.strictEqual((yield* Ref.get(orders)).length, 1, "placed once")
        assert.strictEqual(yield* tokenRequests(emulator), 2)
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("its errors are typed: another origin is UntrustedOriginError", () =>
    Effect.gen(function*() {
      const { auth } = yield* declared
      yield* Effect.gen(function*() {
        const httpClient = yield* AuthorizedHttpClient.AuthorizedHttpClient
        const client = yield* HttpApiClient.makeWith(StoreApi, {
          httpClient,
          baseUrl: "http://127.0.0.1:9"
        })
        const caught = yield* client.orders.list().pipe(
          Effect.as("sent"),
          Effect.catchTag("UntrustedOriginError", () => Effect.succeed("refused"))
        )
        assert.strictEqual(caught, "refused")
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("layerHttpClient: code that knows no tokens derives its client from the plain tag", () =>
    Effect.gen(function*() {
      const { apiUrl, auth, emulator } = yield* declared
      const Plain = AuthorizedHttpClient.layerHttpClient({ apiUrl }).pipe(
        Layer.provide(auth),
        Layer.provide(NodeHttp.layer({ proxy: "none" }))
      )
      yield* Effect.gen(function*() {
        const client = yield* plainStoreClient(apiUrl)
        yield* client.orders.place({ payload: { item: "a table" } })
        yield* emulator.revoke()
        assert.strictEqual((yield* client.orders.list()).length, 1)
      }).pipe(Effect.provide(Plain))
    }))

  it.scopedLive("control: without the token the server says Unauthorized", () =>
    Effect.gen(function*() {
      const { apiUrl } = yield* declared
      const client = yield* Effect.provide(
        plainStoreClient(apiUrl),
        yield* Layer.build(NodeHttp.layer({ proxy: "none" }))
      )
      const error = yield* Effect.flip(client.orders.list())
      assert.strictEqual(error._tag, "Unauthorized")
    }))
})
