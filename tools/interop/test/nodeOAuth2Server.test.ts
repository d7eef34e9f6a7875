import { assert } from "@effect/vitest"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { DateTime, Duration, Effect, Redacted } from "effect"
import { contract, type Quirk, type Refusal, storeAuth } from "../src/contract.js"
import { nodeOAuth2Server } from "../src/nodeOAuth2Server.js"
import { inOwnProcess } from "../src/ownProcess.js"
import { callApi, requestToken } from "../src/wire.js"

// It responds with 401 only to credentials in a header, as RFC 6749 §5.2 allows.
const refused: Refusal = { reason: "InvalidClient", status: 400, code: "invalid_client" }

const roundsDown: Quirk = {
  says: "sends the remaining lifetime in `expires_in`, rounded down: 2 for a token of 2.5 s",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* nodeOAuth2Server.start({ life: 2.5 })
      assert.strictEqual((yield* requestToken(running)).expiresIn, 2)
    })
}

const tellsNoLife: Quirk = {
  says:
    "sends no `expires_in` when less than a second is left: the library assumes 60 minutes, until a 401 replaces the token",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* nodeOAuth2Server.start({ life: 0.9 })
      yield* Effect.gen(function*() {
        const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
        const { get } = yield* AccessTokenProvider.AccessTokenProvider
        const held = yield* get
        assert.strictEqual(Duration.toHours(DateTime.distanceDuration(held.acquiredAt, held.expiresAt)), 1)
        yield* Effect.sleep("1 second")
        assert.strictEqual((yield* callApi(running, held.value)).status, 401)
        assert.strictEqual((yield* client.get("/v1/orders")).status, 200)
        assert.notStrictEqual(Redacted.value((yield* get).value), Redacted.value(held.value))
      }).pipe(Effect.provide(storeAuth(running, running.credentials)))
    })
}

contract(inOwnProcess(nodeOAuth2Server, "nodeOAuth2Server.js", "nodeOAuth2Server"), {
  wrongSecret: refused,
  unknownClient: refused,
  quirks: [roundsDown, tellsNoLife]
})
