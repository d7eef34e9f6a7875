import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { postForm } from "../src/AuthorizationServer.js"
import { oauth2MockServer } from "../src/oauth2MockServer.js"
import { callApi, requestToken } from "./support/client.js"
import { contract, countsWholeSeconds, type Quirk } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"

const revokesNothing: Quirk = {
  says: "responds with 200 to a revocation, but the token stays valid",
  holds: (running) =>
    Effect.gen(function*() {
      const { access_token } = yield* requestToken(running)
      yield* postForm(`${running.authUrl}/revoke`, { token: access_token })
      assert.strictEqual((yield* callApi(running, access_token)).status, 200)
    })
}

contract(inOwnProcess(oauth2MockServer, "oauth2MockServer"), {
  refusal: "accepted",
  quirks: [revokesNothing, countsWholeSeconds(oauth2MockServer)]
})
