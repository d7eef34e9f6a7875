/** Quirks that more than one server has. */
import { assert } from "@effect/vitest"
import { AccessTokenProvider } from "@store-api/core"
import { Effect, Option } from "effect"
import type { AuthorizationServer, Credentials, Running } from "./AuthorizationServer.js"
import { type Quirk, storeAuth } from "./contract.js"
import { callApi, requestToken } from "./wire.js"

/**
 * For servers that decode the body as a form, although the specification sends it raw. `raw` is a client whose secret
 * holds + or %.
 */
export const decodesTheForm = (raw: Credentials): Quirk => ({
  says: "form-decodes the body: a secret with `+` or `%`, sent raw as specified, is refused, and the error says why",
  holds: (running) =>
    Effect.gen(function*() {
      yield* requestToken({ ...running, credentials: raw }) // encoded: the secret is correct
      const error = yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => Effect.flip(get)).pipe(
        Effect.provide(storeAuth(running, raw))
      )
      assert(error._tag === "TokenRefusedError")
      assert.strictEqual(error.reason, "InvalidClient")
      assert.isTrue(error.changedByFormDecoding)
      assert.include(error.message, "contain + or %")
    })
})

const life = 2

const second = (millis: number) => Math.floor(millis / 1000)

const untilWallClock = (millis: number) => Effect.suspend(() => Effect.sleep(Math.max(0, millis - Date.now())))

/** Requests a token late in a second, and calls with it at once and at its end. Returns nothing if it took too long. */
const deadEarly = (running: Running) =>
  Effect.gen(function*() {
    yield* untilWallClock(second(Date.now()) * 1000 + 1600)
    const asked = Date.now()
    const { expiresIn, value } = yield* requestToken(running)
    if (second(Date.now()) !== second(asked)) return Option.none()
    assert.strictEqual(expiresIn, life)
    const young = yield* callApi(running, value)
    yield* untilWallClock((second(asked) + life) * 1000 + 10)
    const old = yield* callApi(running, value)
    return Date.now() - asked < life * 1000 ? Option.some({ young, old }) : Option.none()
  })

/** Causes an occasional 401: the client counts from its own request, the server in whole seconds. */
export const countsWholeSeconds = (server: AuthorizationServer): Quirk => ({
  says: "counts whole seconds: a token expires up to a second before `expires_in` has passed",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* server.start({ life })
      // A late response, as on a busy machine, proves nothing.
      const seen = yield* Effect.repeat(deadEarly(running), { until: Option.isSome })
      const { old, young } = Option.getOrThrow(seen)
      assert.deepStrictEqual([young.status, old.status], [200, 401])
    })
})
