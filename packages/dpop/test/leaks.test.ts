/** No proof, assertion or key appears in what a program prints, logs or traces. */
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Dpop } from "@store-api/dpop"
import { Scenario } from "@store-api/emulator"
import { type Canary, leaksInOutputs } from "@store-api/testing/leaksIn"
import { type Output, render, renderDistinct } from "@store-api/testing/renderings"
import { needsKey } from "@store-api/testing/scenarios"
import { test } from "@store-api/testing/test"
import { Effect, Exit, Logger, LogLevel, Redacted, Tracer } from "effect"
import { assertionsOf, proofsOf } from "./support/emulator.js"
import { pemOf } from "./support/keys.js"
import { setUpScenario } from "./support/scenario.js"

/** The base64 of a key in PEM. */
const bodyOf = (pem: string) => pem.replace(/-----[A-Z ]+-----|\s/g, "")

/** Runs a program at the lowest log level, and returns its spans and the lines of its logger. */
const capture = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const spans: Array<Tracer.Span> = []
    const lines: Array<unknown> = []
    const tracer = yield* Effect.tracer
    const recording = Tracer.make({
      ...tracer,
      span: (...of) => {
        const span = tracer.span(...of)
        spans.push(span)
        return span
      }
    })
    const record = (line: unknown) => void lines.push(line)
    yield* program.pipe(
      Effect.withTracer(recording),
      Effect.provide(
        Logger.replace(Logger.defaultLogger, Logger.map(Logger.stringLogger, record))
      ),
      Logger.withMinimumLogLevel(LogLevel.All)
    )
    const attributes = spans.map(({ attributes }) => [...attributes])
    return { attributes, lines }
  })

/** Uses a client as an application does, and returns all that it shows, with what must not be in it. */
const travel = (
  name: Scenario.Name,
  layer: Parameters<typeof setUpScenario>[1]
) =>
  Effect.gen(function*() {
    const { emulator, keys, options, store } = yield* setUpScenario(name, layer)
    const seen: Array<readonly [name: string, value: unknown]> = []
    const see = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(Effect.withSpan(effect, `the application's ${name}`))
        yield* Effect.log(name, exit)
        seen.push([name, Exit.isSuccess(exit) ? exit.value : exit])
      })
    const failing = HttpClient.filterStatus(store.client, () => false)
    const { attributes, lines } = yield* capture(Effect.gen(function*() {
      yield* see("get", store.provider.get)
      yield* see("a call", store.client.get("/orders"))
      yield* see("a failing call", Effect.flip(failing.get("/orders")))
      yield* see("status", store.provider.status)
    }))
    const values = [...seen, ["options", options], ["lines", lines], [
      "spans",
      attributes
    ]] as const
    const canaries: ReadonlyArray<Canary> = [
      ...(yield* proofsOf(emulator)).map((value) => ({ name: "proof", value })),
      ...(yield* assertionsOf(emulator)).map((value) => ({ name: "assertion", value })),
      ...keys.map((pem) => ({ name: "key", value: bodyOf(pem) }))
    ].filter(({ value }) => value !== "")
    const outputs: ReadonlyArray<Output> = values.flatMap(([name, value]) =>
      renderDistinct(name, value)
    )
    return { attributes, canaries, lines, outputs }
  })

const clients = [
  ["undici", NodeHttpClient.layerUndici],
  ["fetch", FetchHttpClient.layer],
  ["node:http", NodeHttpClient.layer]
] as const

/** One client has all scenarios. The others have one with a proof, an assertion and a repeated token request. */
const rows = clients.flatMap(([client, layer]) => {
  const names: ReadonlyArray<Scenario.Name> = client === "undici"
    ? Scenario.names.filter(needsKey)
    : ["token/assertion-valid-once"]
  return names.map((name) => [name, client, layer] as const)
})

describe.concurrent("a proof, an assertion and a key", () => {
  test.live.each(rows)("are not in any output of %s over %s", function*([name, , layer]) {
    const { attributes, canaries, lines, outputs } = yield* travel(name, layer)
    deepStrictEqual(leaksInOutputs(outputs, canaries), [])
    const { clientAuthentication, dpop } = Scenario.all[name].options
    const kinds = new Set(canaries.map(({ name }) => name))
    deepStrictEqual([kinds.has("proof"), kinds.has("assertion"), kinds.has("key")], [
      dpop !== undefined,
      clientAuthentication !== undefined,
      true
    ])
    for (const kind of kinds) {
      const [canary = assert.fail(kind)] = canaries.filter(({ name }) => name === kind)
      const shown = renderDistinct("control", { headers: { dpop: canary.value } })
      assert.isNotEmpty(leaksInOutputs(shown, [canary]), "control")
    }
    assert.isNotEmpty(lines, "control")
    const names = attributes.flat().map(([name]) => name)
    assert.include(names, "http.request.method", "control")
  })
})

describe("a private key", () => {
  test("is not in the service, in the options that it returns or in an error", function*() {
    const pem = pemOf()
    const privateKey = Redacted.make(pem)
    const dpop = yield* Dpop.make({ privateKey })
    const options = dpop.bind({ clientId: "demo-client" })
    const damaged = Redacted.make(pem.replace("MIGH", "MIGI"))
    const error = yield* Effect.flip(Dpop.make({ privateKey: damaged }))
    const canaries = [{ name: "key", value: bodyOf(pem) }]
    const outputs = Object.entries({ dpop, options, error }).flatMap(([name, value]) =>
      render(name, value)
    )
    deepStrictEqual(leaksInOutputs(outputs, canaries), [])
    assert.isNotEmpty(leaksInOutputs(render("control", { pem }), canaries))
  })
})
