/** No output on one client contains a secret, and controls: the search finds the leaks of a naive program. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import * as Canary from "@store-api/testing/leaksIn"
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

describe("the search for leaks", () => {
  test.live.each(Object.keys(Canary.encodings))(
    "finds the leak of a naive program in every logger, span or log record, encoded: %s",
    function*(encoding) {
      for (const canary of canaries) {
        const naive = new Naive({ message: Canary.encodings[encoding]?.(canary.value) ?? "" })
        const { outputs } = yield* capture(
          Effect.fail(naive).pipe(
            Effect.tapErrorCause((cause) => Effect.logInfo(naive.message, cause)),
            Effect.withSpan("naive", { attributes: { text: naive.message } })
          )
        )
        for (const sink of sinks) {
          const ofSink = outputs.filter(({ name }) => name === sink)
          assert.isAbove(
            ofSink.flatMap(({ text }) => Canary.find(text, [canary])).length,
            0,
            `${sink}: ${JSON.stringify(ofSink)}`
          )
        }
      }
    }
  )

  test.live("finds the leak of a naive program in every logger when only the cause has it", function*() {
    const { outputs } = yield* capture(
      Effect.logError("failed", Cause.fail(new Naive({ message: secret.value })))
    )
    // OpenTelemetry's log records omit causes.
    for (
      const sink of sinks.filter((name) => name.startsWith("logger") || name === "console.log")
    ) {
      assert.isAbove(
        Canary.leaksInOutputs(outputs.filter(({ name }) => name === sink), canaries).length,
        0,
        sink
      )
    }
  })

  it("finds a leak in the distinct renderings if any rendering shows it", () => {
    const { value } = token
    const hidden = (key: PropertyKey) =>
      Object.defineProperty(new Error("naive"), key, { value, enumerable: false })
    const silent = {
      toString: () => "naive",
      toJSON: () => "naive",
      [inspect.custom]: () => "naive"
    }
    const holders: ReadonlyArray<unknown> = [
      { ...silent, held: value },
      Object.defineProperty({ ...silent }, "held", { value, enumerable: false }),
      Object.assign(hidden("held"), silent),
      new Error(value),
      new Error("naive", { cause: new Error(value) }),
      new Naive({ message: value }),
      new Map([[value, { deep: { deep: { deep: { deep: new Set([value]) } } } }]]),
      ...[
        { held: value },
        { a: { b: { c: { d: { e: { f: value } } } } } },
        { [Symbol("held")]: value },
        { [value]: true },
        { name: value },
        { stack: value },
        { held: Buffer.from(value) }
      ].map((fields) => Object.assign(new Error("naive"), fields)),
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
      const all = Canary.leaksInOutputs(render("it", holder), [token])
      assert.strictEqual(
        Canary.leaksInOutputs(renderDistinct("it", holder), [token]).length > 0,
        all.length > 0,
        all.join("\n")
      )
    }
    assert.isAbove(
      holders.filter((holder) =>
        Canary.leaksInOutputs(render("it", holder), [token]).length > 0
      ).length,
      20
    )
  })

  test.live("finds a leak on the console of the process, which has its warnings", function*() {
    const seen: Array<{ name: string; text: string }> = []
    const stop = watchConsole((output) => seen.push(output))
    for (const method of ["log", "info", "warn", "error", "debug", "trace"] as const) {
      console[method]({ a: secret.value })
    }
    process.emitWarning(secret.value)
    yield* Effect.promise(() => new Promise((resolve) => process.nextTick(resolve)))
    yield* Effect.yieldNow()
    stop()
    assert.sameMembers(
      seen.filter(({ text }) => Canary.find(text, canaries).length > 0).map(({ name }) =>
        name
      ),
      [
        "console.log",
        "console.info",
        "console.warn",
        "console.error",
        "console.debug",
        "console.trace",
        "warning"
      ]
    )
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

  const cases = Object.keys(Canary.encodings).flatMap((name) =>
    Object.keys(printers).map((printer) => [name, printer] as const)
  )

  it.each(cases)("finds a canary in the encoding %s, in the rendering %s", (name, printer) => {
    for (const canary of canaries) {
      const outputs = render("", new Carrier((Canary.encodings[name] ?? String)(canary.value)))
      const [output, ...others] = outputs.filter(({ name }) => name === `: ${printer}`)
      deepStrictEqual([
        ...new Set(Canary.find(output?.text ?? "", canaries).map((found) => found.canary))
      ], [canary.name])
      assert.lengthOf(others, 0)
    }
  })

  it("finds nothing in other text or in another canary, in any encoding", () => {
    for (const encode of Object.values(Canary.encodings)) {
      deepStrictEqual(Canary.find(encode(Canary.secret().value), canaries), [])
      deepStrictEqual(Canary.find(encode(Canary.token().value), canaries), [])
    }
    deepStrictEqual(Canary.find(Buffer.from("x".repeat(2000)).toString("hex"), canaries), [])
    deepStrictEqual(Canary.find("", canaries), [])
  })

  it("ignores a piece of 11 characters", () => {
    for (const { name, value } of canaries) {
      deepStrictEqual(Canary.find(`… ${value.slice(3, 14)} …`, [{ name, value }]), [])
    }
  })
})
