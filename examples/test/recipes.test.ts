import { HttpApp, HttpRouter } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError, AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
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
  Schedule,
  Scope,
  TestClock
} from "effect"
// The tests run what is shown in docs/recipes.md.
import { health } from "../src/recipes/health.js"
import { KeepWarm } from "../src/recipes/keepWarm.js"
import { atRetryAt } from "../src/recipes/retryAt.js"
import { Stores } from "../src/recipes/stores.js"
import { StoreAuthLive } from "../src/recipes/warmUp.js"

const token = (value: string) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
    }))

const refused = new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", status: 401 })

/** A provider over a source that answers the n-th call with a function of n. */
const provider = (
  answer: (n: number) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: AccessTokenProvider.layer().pipe(
      Layer.provide(TokenSource.layer(() => Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), answer)))
    )
  }))

describe("recipes", () => {
  it.scopedLive("warm-up: a token is there when the layer is; wrong credentials fail its build", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const build = (secret: Redacted.Redacted) =>
        Effect.exit(Effect.scoped(Layer.build(StoreAuthLive))).pipe(
          Effect.withConfigProvider(ConfigProvider.fromMap(
            new Map([
              ["STORE_API_AUTH_URL", emulator.url],
              ["STORE_API_URL", emulator.url],
              ["STORE_API_CLIENT_ID", Emulator.demoClient.clientId],
              ["STORE_API_CLIENT_SECRET", Redacted.value(secret)]
            ])
          ))
        )
      const good = yield* build(Emulator.demoClient.clientSecret)
      assert.isTrue(Exit.isSuccess(good))
      assert.strictEqual((yield* emulator.tokens).length, 1)
      const bad = yield* Effect.flip(yield* build(Redacted.make("another invented secret")))
      assert.strictEqual(bad._tag, "TokenRefusedError")
    }))

  it.effect("keep warm: renewed while nobody calls, through a defect, and ended with the layer", () =>
    Effect.gen(function*() {
      const source = yield* provider((n) => n === 2 ? Effect.die("an invented defect") : token(`token-${n}`))
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.provideMerge(KeepWarm, source.layer), scope)
      yield* TestClock.adjust("54 minutes")
      assert.strictEqual(yield* source.calls, 1)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual(yield* source.calls, 3, "a renewal that failed, and one that did not")
      const { current } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      assert.isTrue(Option.isSome(yield* current), "at 60 minutes a living token is held")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("10 hours")
      assert.strictEqual(yield* source.calls, 3)
    }))

  it.effect("retry by retryAt: as often as told, not before the moment that the error names, only what may heal", () =>
    Effect.gen(function*() {
      const times = yield* Ref.make<ReadonlyArray<number>>([])
      const asking = (error: AccessTokenError.AccessTokenError | undefined) =>
        Effect.gen(function*() {
          const now = yield* Clock.currentTimeMillis
          yield* Ref.update(times, (all) => [...all, now])
          return yield* error === undefined
            ? new AccessTokenError.TokenRefusedError({
              reason: "RateLimited",
              status: 429,
              retryAt: Option.some(DateTime.unsafeMake(now + 20_000))
            })
            : error
        }).pipe(Effect.retry(atRetryAt(3)))
      const fiber = yield* Effect.fork(Effect.flip(asking(undefined)))
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* fiber)._tag, "TokenRefusedError")
      deepStrictEqual(yield* Ref.get(times), [0, 20_000, 40_000, 60_000])
      yield* Ref.set(times, [])
      assert.strictEqual(yield* Effect.flip(asking(refused)), refused)
      assert.strictEqual((yield* Ref.get(times)).length, 1, "wrong credentials are not tried again")
    }))

  it.effect("health: 200 while calls can be made, 503 while none can, and no secret in either", () =>
    Effect.gen(function*() {
      const ask = (layer: Layer.Layer<AccessTokenProvider.AccessTokenProvider>, first: boolean) =>
        Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          if (first) yield* Effect.exit(provider.get)
          const app = HttpRouter.toHttpApp(health)
          const runtime = yield* Effect.runtime<AccessTokenProvider.AccessTokenProvider>()
          const handler = HttpApp.toWebHandlerRuntime(runtime)(Effect.flatten(app))
          const response = yield* Effect.promise(() => handler(new Request("http://localhost/health")))
          return [response.status, yield* Effect.promise(() => response.text())] as const
        }).pipe(Effect.provide(layer))
      const good = yield* provider(() => token("an-invented-canary"))
      const bad = yield* provider(() => Effect.fail(refused))
      const [idle, idleBody] = yield* ask(good.layer, false)
      assert.strictEqual(idle, 200)
      assert.include(idleBody, "\"zone\":\"Empty\"")
      const [fresh, freshBody] = yield* ask(good.layer, true)
      assert.strictEqual(fresh, 200)
      assert.include(freshBody, "\"zone\":\"Fresh\"")
      assert.notInclude(freshBody, "canary")
      const [failing, failingBody] = yield* ask(bad.layer, true)
      assert.strictEqual(failing, 503)
      assert.include(failingBody, "\"error\":\"TokenRefusedError\"")
    }))
})

describe("several stores in one process", () => {
  /** Two token services; the variables of two stores. */
  const twoStores = Effect.gen(function*() {
    const north = yield* Emulator.make()
    const south = yield* Emulator.make()
    const variables = (prefix: string, emulator: Emulator.Service) =>
      [
        [`${prefix}_AUTH_URL`, emulator.url],
        [`${prefix}_URL`, emulator.url],
        [`${prefix}_CLIENT_ID`, Emulator.demoClient.clientId],
        [`${prefix}_CLIENT_SECRET`, Redacted.value(Emulator.demoClient.clientSecret)]
      ] as const
    const config = ConfigProvider.fromMap(new Map([...variables("NORTH", north), ...variables("SOUTH", south)]))
    return { north, south, config: Layer.setConfigProvider(config) }
  })

  const tokenRequests = (emulator: Emulator.Service) =>
    Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

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

  const call = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/orders"))

  it.scopedLive("keys share no tokens, flights or cool-downs; one key's uses share all of them", () =>
    Effect.gen(function*() {
      const { config, north, south } = yield* twoStores
      // The south refuses every token request of its first flight and of the next.
      yield* south.fail(Fault.status(400, { times: 50 }))
      yield* Effect.gen(function*() {
        const calls = Array.from({ length: 50 }, () => Effect.provide(call, Stores.get("north")))
        const failing = Array.from({ length: 50 }, () => Effect.flip(Effect.provide(call, Stores.get("south"))))
        const [responses, errors] = yield* Effect.all([
          Effect.all(calls, { concurrency: "unbounded" }),
          Effect.all(failing, { concurrency: "unbounded" })
        ], { concurrency: "unbounded" })
        assert.isTrue(responses.every(({ status }) => status === 200))
        assert.isTrue(errors.every(({ _tag }) => _tag === "TokenRefusedError"))
        assert.strictEqual(yield* tokenRequests(north), 1)
        assert.strictEqual(yield* tokenRequests(south), 1, "one flight, and its cool-down for the others")
        yield* Effect.provide(call, Stores.get("north"))
        assert.strictEqual(yield* tokenRequests(north), 1, "kept between uses")
        assert.strictEqual((yield* authorizations(south)).size, 0, "no call of the south went out without a token")
        // Once its service is back and its cool-down over, the south has a token of its own.
        yield* south.clearFaults
        yield* Effect.retry(Effect.provide(call, Stores.get("south")), Schedule.spaced("100 millis"))
      }).pipe(Effect.provide(Layer.provide(Stores.Default, config)))
      const [ofNorth, ofSouth] = [yield* authorizations(north), yield* authorizations(south)]
      assert.strictEqual(ofNorth.size, 1)
      assert.strictEqual(ofSouth.size, 1)
      assert.isFalse([...ofSouth].some((token) => ofNorth.has(token)), "each its own")
    }))
})
