/** The outcomes on one client, and controls: their checks detect each fault of a naive client. */
import { HttpClient, HttpClientRequest } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { ClientCredentials, TokenRequest } from "@store-api/core"
import { Emulator, Scenario } from "@store-api/emulator"
import { Effect, Exit, Option, Schedule } from "effect"
import { clients, undici } from "../support/clients.js"
import { watchUnhandled } from "../support/telemetry.js"
import { test } from "../support/test.js"
import { isDefect, observe, type Run, socketsLeft } from "./observation.js"
import { checkToken, onClients, runToken, type TokenRow } from "./onClients.js"

const [client = assert.fail("no client")] = clients

/** A token request without the library. */
const request = (url: string) =>
  ClientCredentials.make(Emulator.demoClient).pipe(
    Effect.flatMap(TokenRequest.specification.request),
    Effect.map(HttpClientRequest.setUrl(`${url}/v1/oauth/accesstoken`))
  )

const run = (name: Scenario.Name): Run => ({
  client,
  scenario: Scenario.all[name],
  timing: { attemptTimeout: 100, deadline: 200 },
  longest: 300
})

onClients([undici])

describe("the checks detect a naive client that", () => {
  for (const { layer, name } of clients) {
    test.live(`leaves a body unread and its socket open, with ${name}`, function*() {
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

  test.live("waits forever", function*() {
    const seen = yield* observe(
      run("token/silence"),
      ({ emulator }) =>
        Effect.flatMap(HttpClient.HttpClient, (http) => Effect.flatMap(request(emulator.url), http.execute)).pipe(
          Effect.provide(client.layer(Option.none()))
        )
    )
    assert.isTrue(Option.isNone(seen.exit))
  })

  test.live("has a defect, in itself or in one of its calls", function*() {
    const died = yield* observe(run("token/specification"), () => Effect.die("an invented defect"))
    assert.isTrue(Option.exists(died.exit, isDefect))
    const inside = yield* observe(run("token/specification"), () => Effect.succeed([Exit.die("an invented defect")]))
    assert.isTrue(Option.exists(inside.exit, isDefect))
    const failed = yield* observe(run("token/specification"), () => Effect.fail("an invented error"))
    assert.isFalse(Option.exists(failed.exit, isDefect))
  })

  test.live("leaves a rejection and an exception unhandled", function*() {
    const listeners = process.listenerCount("unhandledRejection")
    yield* Effect.scoped(Effect.gen(function*() {
      const unhandled = yield* watchUnhandled
      assert.lengthOf(yield* unhandled, 0)
      void Promise.reject(new Error("an invented rejection"))
      setImmediate(() => {
        throw new Error("an invented exception")
      })
      const seen = yield* unhandled.pipe(
        Effect.repeat({ until: ({ length }) => length === 2, schedule: Schedule.spaced("10 millis") }),
        Effect.timeout("5 seconds")
      )
      assert.isDefined(seen)
      assert.sameMembers((yield* unhandled).map(String), [
        "Error: an invented rejection",
        "Error: an invented exception"
      ])
    }))
    assert.strictEqual(process.listenerCount("unhandledRejection"), listeners, "those of the test runner are back")
  })
})

describe("the check of a row", () => {
  test.live("fails for each wrong property", function*() {
    const name = "token/specification"
    const row = yield* runToken(name, client)
    checkToken(name, row)
    const [request = assert.fail("no request")] = row.requests
    const wrong: Record<string, TokenRow> = {
      hang: { ...row, exit: Option.none() },
      defect: { ...row, exit: Option.some(Exit.die("an invented defect")) },
      late: { ...row, elapsed: 60_000 },
      "two requests": { ...row, requests: [request, request] },
      "a request elsewhere": { ...row, elsewhere: [request] },
      "a call of the API": { ...row, requests: [{ ...request, kind: "api" }] },
      "a flood read": { ...row, requests: [{ ...request, sentBytes: 100 * 1024 * 1024 }] },
      "a socket": { ...row, socketsLeft: 1 }
    }
    for (const [what, changed] of Object.entries(wrong)) {
      assert.throws(() => checkToken(name, changed), undefined, undefined, what)
    }
    assert.throws(() => checkToken("token/body-html", row))
    assert.throws(() => checkToken("token/429-retry-after-seconds", { ...row, requests: [request, request] }))
  })
})
