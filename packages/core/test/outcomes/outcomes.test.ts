/** The outcomes on one client, and controls: the search for open sockets and unhandled errors finds them. */
import { HttpClient, HttpClientRequest } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { ClientCredentials, TokenRequest } from "@store-api/core"
import { Emulator, Scenario } from "@store-api/emulator"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Option } from "effect"
import { clients, undici } from "../support/clients.js"
import { watchUnhandled } from "../support/telemetry.js"
import { socketsLeft } from "./observation.js"
import { onClients } from "./onClients.js"

/** A token request without the library. */
const request = (url: string) =>
  ClientCredentials.make(Emulator.demoClient).pipe(
    Effect.flatMap(TokenRequest.specification.request),
    Effect.map(HttpClientRequest.setUrl(`${url}/v1/oauth/accesstoken`))
  )

onClients([undici])

describe("the checks of outcomes", () => {
  for (const { layer, name } of clients) {
    test.live(`control: an unread body leaves a socket open on ${name}`, function*() {
      const emulator = yield* Emulator.make()
      yield* emulator.fail(Scenario.get("token/flood-endless"))
      const response = yield* Effect.flatMap(
        HttpClient.HttpClient,
        (http) => Effect.flatMap(request(emulator.url), http.execute)
      ).pipe(Effect.provide(layer(Option.none())))
      assert.strictEqual(yield* socketsLeft(emulator, "500 millis"), 1)
      // Uses the response last: the client ends the request when the response is garbage collected.
      assert.strictEqual(response.status, 200)
    })
  }

  test.live("control: an unhandled rejection is seen like an unhandled exception", function*() {
    const listeners = process.listenerCount("unhandledRejection")
    yield* Effect.scoped(Effect.gen(function*() {
      const unhandled = yield* watchUnhandled
      assert.lengthOf(yield* unhandled, 0)
      void Promise.reject(new Error("an invented rejection"))
      setImmediate(() => {
        throw new Error("an invented exception")
      })
      yield* until("both are seen", Effect.map(unhandled, ({ length }) => length === 2))
      assert.sameMembers((yield* unhandled).map(String), [
        "Error: an invented rejection",
        "Error: an invented exception"
      ])
    }))
    assert.strictEqual(
      process.listenerCount("unhandledRejection"),
      listeners,
      "those of the test runner are back"
    )
  })
})
