/** Quirks that more than one server has. */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { type AuthorizationServer, rawClient, type Running } from "../../src/AuthorizationServer.js"
import { callApi, client, requestToken } from "./client.js"
import type { Quirk } from "./contract.js"

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

const life = 2

const second = (millis: number) => Math.floor(millis / 1000)

const untilWallClock = (millis: number) => Effect.suspend(() => Effect.sleep(Math.max(0, millis - Date.now())))

/** Requests a token late in a second, and calls with it at once and at its end. Returns nothing if it took too long. */
const deadEarly = (running: Running) =>
  Effect.gen(function*() {
    yield* untilWallClock(second(Date.now()) * 1000 + 1600)
    const asked = Date.now()
    const { access_token, expires_in } = yield* requestToken(running)
    if (second(Date.now()) !== second(asked)) return Option.none()
    assert.strictEqual(expires_in, life)
    const young = yield* callApi(running, access_token)
    yield* untilWallClock((second(asked) + life) * 1000 + 10)
    const old = yield* callApi(running, access_token)
    return Date.now() - asked < life * 1000 ? Option.some([young.status, old.status]) : Option.none()
  })

/** Causes an occasional 401: the client counts from its own request, the server in whole seconds. */
export const countsWholeSeconds = (server: AuthorizationServer): Quirk => ({
  says: "counts whole seconds: a token expires up to a second before `expires_in` has passed",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* server.start({ life })
      // A late response, as on a busy machine, proves nothing.
      const seen = yield* Effect.repeat(deadEarly(running), { until: Option.isSome })
      assert.deepStrictEqual(Option.getOrThrow(seen), [200, 401])
    })
})
