import { assert } from "@effect/vitest"
import { DateTime, Duration, Effect, Redacted } from "effect"
import { nodeOAuth2Server } from "../src/nodeOAuth2Server.js"
import { call, callApi, client, requestToken } from "./support/client.js"
import { contract, type Quirk } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"

const roundsDown: Quirk = {
  says: "sends the remaining lifetime in `expires_in`, rounded down: 2 for a token of 2.5 s",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* nodeOAuth2Server.start({ life: 2.5 })
      assert.strictEqual((yield* requestToken(running)).expires_in, 2)
    })
}

const tellsNoLife: Quirk = {
  says:
    "sends no `expires_in` when less than a second is left: the library assumes 60 minutes, until a 401 replaces the token",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* nodeOAuth2Server.start({ life: 0.9 })
      const store = yield* client(running)
      const { acquiredAt, expiresAt, value } = yield* store.provider.get
      assert.strictEqual(Duration.toHours(DateTime.distanceDuration(acquiredAt, expiresAt)), 1)
      yield* Effect.sleep("1 second")
      assert.strictEqual((yield* callApi(running, Redacted.value(value))).status, 401)
      assert.strictEqual(yield* call(store), 200)
      assert.notStrictEqual(Redacted.value((yield* store.provider.get).value), Redacted.value(value))
    })
}

contract(inOwnProcess(nodeOAuth2Server, "nodeOAuth2Server"), {
  // It responds with 401 only to credentials in a header, as RFC 6749 §5.2 allows.
  refusal: { reason: "InvalidClient", status: 400, code: "invalid_client" },
  quirks: [roundsDown, tellsNoLife]
})
