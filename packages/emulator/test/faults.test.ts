import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault, Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Chunk, Clock, Effect, Exit, Fiber, Option, Scope, TestClock } from "effect"
import {
  askToken,
  callApi,
  failing,
  getToken,
  json,
  receive,
  tokenPath,
  until
} from "./utils.js"

const statuses = <E>(requests: ReadonlyArray<Effect.Effect<{ readonly status: number }, E>>) =>
  Effect.map(Effect.all(requests), (responses) => responses.map(({ status }) => status))

test.live("a script applies its steps in order to `times` requests each", function*() {
  const { fail, pendingFaults, url } = yield* failing(
    Fault.status(500),
    Fault.status(502, { times: 2 })
  )
  yield* fail(Fault.status(503))
  deepStrictEqual((yield* pendingFaults).map(({ times }) => times), [1, 2, 1])
  deepStrictEqual(yield* statuses([askToken(url), askToken(url)]), [500, 502])
  deepStrictEqual((yield* pendingFaults).map(({ times }) => times), [1, 1])
  deepStrictEqual(yield* statuses([askToken(url), askToken(url), askToken(url)]), [
    502,
    503,
    200
  ])
  assert.lengthOf(yield* pendingFaults, 0)
})

test.live("a step applies only to requests to the place that `on` names", function*() {
  const { fail, pendingFaults, url } = yield* Emulator.make()
  const token = yield* getToken(url)
  yield* fail([Fault.status(418, { on: "api" }), Fault.status(500)])
  deepStrictEqual(yield* statuses([askToken(url), askToken(url)]), [500, 200])
  deepStrictEqual((yield* pendingFaults).map(({ on }) => on), ["api"])
  deepStrictEqual(yield* statuses([callApi(url, token), callApi(url, token)]), [418, 200])
})

test.live("a step with `times: Infinity` applies until it is cleared", function*() {
  const { clearFaults, url } = yield* failing(Fault.status(500, { times: Infinity }))
  deepStrictEqual(yield* statuses(Array.from({ length: 5 }, () => askToken(url))), [
    500,
    500,
    500,
    500,
    500
  ])
  yield* clearFaults
  assert.strictEqual((yield* askToken(url)).status, 200)
})

test.live("a step applies to exactly `times` of many concurrent requests", function*() {
  const { url } = yield* failing(Fault.status(500, { times: 10 }))
  const responses = yield* Effect.all(Array.from({ length: 30 }, () => askToken(url)), {
    concurrency: "unbounded"
  })
  assert.lengthOf(responses.filter(({ status }) => status === 500), 10)
  assert.lengthOf(responses.filter(({ status }) => status === 200), 20)
})

it("the scenarios are exactly those that the README lists with these outcomes", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
  const readmeRows = readme.split("\n").filter((line) =>
    line.startsWith("| `token/") || line.startsWith("| `api/")
  )
  const rows = Scenario.names.map((name) => {
    const { options, outcome } = Scenario.all[name]
    const needed = Object.entries(options).map(([option, value]) =>
      value === true ? `\`${option}\`` : `\`${option}: "${value}"\``
    )
    const words = Scenario.describeOutcome(outcome)
    assert.match(`${name} ${words}`, /^(token|api)\/[a-z0-9.-]+ .{6,}$/)
    const suffix = needed.length === 0 ? "" : ` (${needed.join(", ")})`
    return `| \`${name}\`${suffix} | ${words} |`
  })
  deepStrictEqual(readmeRows, rows)
})

test.live("a scripted response has exactly the status, headers and body of its step", function*() {
  const headers = { "Retry-After": ["1", "2"], "Content-Type": "text/html" }
  const { url } = yield* failing(
    Fault.status(503, { headers, body: "<html>" }),
    Fault.status(429, { headers })
  )
  const response = yield* askToken(url)
  deepStrictEqual([response.status, response.text, response.headers["content-type"]], [
    503,
    "<html>",
    "text/html"
  ])
  assert.include(yield* receive(url, 100), "Retry-After: 1\r\nRetry-After: 2\r\n")
})

test.live("a scripted response has no body by default", function*() {
  const { url } = yield* failing(Fault.status(500))
  const { headers, status, text } = yield* askToken(url)
  deepStrictEqual([status, text, headers["content-type"]], [500, "", undefined])
})

test.live("a response of Fault.body has status 200 with exactly this body", function*() {
  const { url } = yield* failing(
    Fault.body(`{"access_token":`),
    Fault.body(Uint8Array.of(0x7b, 0x7d))
  )
  const first = yield* askToken(url)
  deepStrictEqual([first.status, first.text], [200, `{"access_token":`])
  assert.strictEqual(first.headers["content-type"], "application/json")
  deepStrictEqual(json(yield* askToken(url)), {})
})

test.live("a scripted response is sent to a wrong request too", function*() {
  const { url } = yield* failing(Fault.status(599))
  const wrong = { method: "GET", path: `${tokenPath}?a` }
  assert.strictEqual((yield* askToken(url, wrong)).status, 599)
})

test.live("the log has the status of a scripted response", function*() {
  const { requests, url } = yield* failing(Fault.status(599))
  yield* askToken(url)
  deepStrictEqual((yield* requests)[0]?.status, Option.some(599))
})

test.each(
  [
    ["the normal response", Fault.delay("1 hour"), 200],
    ["a scripted status", Fault.status(503, { delay: "1 hour" }), 503]
  ] as const
)("a delay precedes %s once, by the emulator's clock", function*([, fault, status]) {
  const { url } = yield* failing(fault)
  const fiber = yield* Effect.fork(askToken(url))
  yield* until(Effect.map(TestClock.sleeps(), (times) => Chunk.contains(times, 3_600_000)))
  yield* TestClock.adjust("3599999 millis")
  assert.isNull(fiber.unsafePoll())
  yield* TestClock.adjust("1 millis")
  assert.strictEqual((yield* Fiber.join(fiber)).status, status)
  assert.strictEqual((yield* askToken(url)).status, 200)
})

test.live("a delay leaves no timer when the client disconnects or the scope closes", function*() {
  let sleeping = 0
  const sleepForEver = Effect.acquireUseRelease(
    Effect.sync(() => ++sleeping),
    () => Effect.never,
    () => Effect.sync(() => --sleeping)
  )
  const clock = Object.assign(Clock.make(), { sleep: () => sleepForEver })
  const scope = yield* Scope.make()
  const { fail, url } = yield* Emulator.make().pipe(
    Scope.extend(scope),
    Effect.withClock(clock)
  )
  yield* fail(Fault.delay("1 hour", { times: 20 }))
  const fibers = yield* Effect.forEach(
    Array.from({ length: 20 }),
    () => Effect.fork(Effect.exit(askToken(url)))
  )
  yield* until(Effect.sync(() => sleeping === 20))
  yield* Effect.forEach(fibers.slice(0, 10), Fiber.interrupt, { discard: true })
  yield* until(Effect.sync(() => sleeping === 10))
  yield* Scope.close(scope, Exit.void)
  yield* Effect.forEach(fibers.slice(10), Fiber.join, { discard: true })
  yield* until(Effect.sync(() => sleeping === 0))
})

test.live("a hanging request ends only when the client disconnects, even if the script is cleared", function*() {
  const { clearFaults, connections, pendingFaults, requests, url } = yield* failing(
    Fault.hang()
  )
  const hanging = yield* Effect.fork(askToken(url))
  yield* until(Effect.map(pendingFaults, ({ length }) => length === 0))
  yield* clearFaults
  yield* Effect.sleep("200 millis")
  assert.isNull(hanging.unsafePoll())
  yield* Fiber.interrupt(hanging)
  yield* until(Effect.map(connections, (open) => open === 0))
  const [recorded] = yield* requests
  deepStrictEqual([recorded?.status, (yield* askToken(url)).status], [Option.none(), 200])
})
