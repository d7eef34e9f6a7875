/** No output on one client contains a secret, and controls: the search finds the leaks of a naive program. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import * as Canary from "@store-api/testing/leaksIn"
import { encodings, find, leaksInOutputs } from "@store-api/testing/leaksIn"
import { printers, render, renderDistinct } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Cause, Effect, Option, Schema } from "effect"
import { NodeInspectSymbol } from "effect/Inspectable"
import { undici } from "../support/clients.js"
import { capture, watchConsole } from "../support/telemetry.js"
import { onEveryScenario } from "./onEveryScenario.js"

const secret = Canary.secret()
const token = Canary.token()
const canaries = [secret, token]

class Naive extends Schema.TaggedError<Naive>()("Naive", { message: Schema.String }) {}

/** Outputs that show the text of a naive program, whatever its encoding. */
const sinks = [
  ...["string", "logfmt", "json", "structured"].map((name) => `logger ${name}`),
  "console.log",
  "span naive",
  "log record"
]

onEveryScenario(undici, "first")

describe("the leak of a naive program is found", () => {
  test.live.each(Object.keys(encodings))("in every logger, span and log record, encoded: %s", function*(encoding) {
    for (const canary of canaries) {
      const naive = new Naive({ message: encodings[encoding]?.(canary.value) ?? "" })
      const { outputs } = yield* capture(
        Effect.fail(naive).pipe(
          Effect.tapErrorCause((cause) => Effect.logInfo(naive.message, cause)),
          Effect.withSpan("naive", { attributes: { text: naive.message } })
        )
      )
      for (const sink of sinks) {
        const ofSink = outputs.filter(({ name }) => name === sink)
        assert.isAbove(
          ofSink.flatMap(({ text }) => find(text, [canary])).length,
          0,
          `${sink}: ${JSON.stringify(ofSink)}`
        )
      }
    }
  })

  test.live("in every logger when only the cause contains the secret", function*() {
    const { outputs } = yield* capture(Effect.logError("failed", Cause.fail(new Naive({ message: secret.value }))))
    // OpenTelemetry's log records omit causes.
    for (const sink of sinks.filter((name) => name.startsWith("logger") || name === "console.log")) {
      assert.isAbove(leaksInOutputs(outputs.filter(({ name }) => name === sink), canaries).length, 0, sink)
    }
  })

  it("in the distinct renderings, if any rendering shows it", () => {
    const { value } = token
    const hidden = (key: PropertyKey) => Object.defineProperty(new Error("naive"), key, { value, enumerable: false })
    const silent = { toString: () => "naive", toJSON: () => "naive", [inspect.custom]: () => "naive" }
    const holders: ReadonlyArray<unknown> = [
      { ...silent, held: value },
      Object.defineProperty({ ...silent }, "held", { value, enumerable: false }),
      Object.assign(hidden("held"), silent),
      new Error(value),
      new Error("naive", { cause: new Error(value) }),
      new Naive({ message: value }),
      new Map([[value, { deep: { deep: { deep: { deep: new Set([value]) } } } }]]),
      Object.assign(new Error("naive"), { held: value }),
      Object.assign(new Error("naive"), { a: { b: { c: { d: { e: { f: value } } } } } }),
      Object.assign(new Error("naive"), { [Symbol("held")]: value }),
      Object.assign(new Error("naive"), { [value]: true }),
      Object.assign(new Error("naive"), { name: value }),
      Object.assign(new Error("naive"), { stack: value }),
      Object.assign(new Error("naive"), { held: Buffer.from(value) }),
      hidden("held"),
      hidden("name"),
      hidden(Symbol("held")),
      Object.defineProperty({}, "held", { get: () => value, enumerable: true }),
      { toString: () => value },
      { toJSON: () => value },
      { [inspect.custom]: () => value },
      new (class {
        readonly [NodeInspectSymbol] = () => value
      })(),
      Object.create({ held: value }),
      () => value,
      value,
      [value],
      Option.some(value),
      Cause.fail(value)
    ]
    for (const holder of holders) {
      const all = leaksInOutputs(render("it", holder), [token])
      assert.strictEqual(
        leaksInOutputs(renderDistinct("it", holder), [token]).length > 0,
        all.length > 0,
        all.join("\n")
      )
    }
    assert.isAbove(holders.filter((holder) => leaksInOutputs(render("it", holder), [token]).length > 0).length, 20)
  })

  test.live("on the console of the process and in its warnings", function*() {
    const seen: Array<{ name: string; text: string }> = []
    const stop = watchConsole((output) => seen.push(output))
    for (const method of ["log", "info", "warn", "error", "debug", "trace"] as const) {
      console[method]({ a: secret.value })
    }
    process.emitWarning(secret.value)
    yield* Effect.promise(() => new Promise((resolve) => process.nextTick(resolve)))
    yield* Effect.yieldNow()
    stop()
    assert.sameMembers(seen.filter(({ text }) => find(text, canaries).length > 0).map(({ name }) => name), [
      "console.log",
      "console.info",
      "console.warn",
      "console.error",
      "console.debug",
      "console.trace",
      "warning"
    ])
  })
})

/** An error with the text in its message, its stack and a property. */
class Carrier extends Error {
  readonly held: string
  constructor(text: string) {
    super(text)
    this.held = text
  }
}

describe("the search", () => {
  const canaries = [Canary.secret(), Canary.token()]

  describe.each(Object.keys(encodings))("finds a canary in the encoding: %s", (name) => {
    const encode = encodings[name] ?? String

    it.each(canaries)("in a text, a $name", (canary) => {
      const found = find(`<before ${encode(canary.value)} after>`, canaries)
      assert.isAbove(found.length, 0)
      assert.isTrue(found.every((finding) => finding.canary === canary.name))
    })

    it.each(Object.keys(printers))("in the rendering: %s", (rendering) => {
      for (const canary of canaries) {
        const outputs = render("", new Carrier(encode(canary.value))).filter(({ name }) => name === `: ${rendering}`)
        assert.lengthOf(outputs, 1)
        assert.isAbove(outputs.flatMap(({ text }) => find(text, [canary])).length, 0)
      }
    })
  })

  it("finds nothing in other text or in another canary, in any encoding", () => {
    for (const encode of Object.values(encodings)) {
      deepStrictEqual(find(encode(Canary.secret().value), canaries), [])
      deepStrictEqual(find(encode(Canary.token().value), canaries), [])
    }
    deepStrictEqual(find(Buffer.from("x".repeat(2000)).toString("hex"), canaries), [])
    deepStrictEqual(find("", canaries), [])
  })

  it("ignores a piece of 11 characters", () => {
    for (const { name, value } of canaries) deepStrictEqual(find(`… ${value.slice(3, 14)} …`, [{ name, value }]), [])
  })
})
