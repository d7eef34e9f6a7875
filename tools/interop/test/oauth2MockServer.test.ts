import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { contract, type Quirk } from "../src/contract.js"
import { oauth2MockServer } from "../src/oauth2MockServer.js"
import { inOwnProcess } from "../src/ownProcess.js"
import { countsWholeSeconds } from "../src/quirks.js"
import { callApi, postFormOk, requestToken } from "../src/wire.js"

const revokesNothing: Quirk = {
  says: "responds with 200 to a revocation, but the token stays valid",
  holds: (running) =>
    Effect.gen(function*() {
      const { value } = yield* requestToken(running)
      yield* postFormOk(`${running.authUrl}/revoke`, { token: Redacted.value(value) })
      assert.strictEqual((yield* callApi(running, value)).status, 200)
    })
}

contract(inOwnProcess(oauth2MockServer, "oauth2MockServer.js", "oauth2MockServer"), {
  wrongSecret: "accepted",
  unknownClient: "accepted",
  quirks: [revokesNothing, countsWholeSeconds(oauth2MockServer)]
})
