import { assert, describe, it, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Cause, Effect, Exit, Fiber, FiberRef, Logger, LogLevel, Option } from "effect"
import { endpoint, member, valueOf } from "./support/fleet.js"
import { renderings } from "./support/renderings.js"

/** What a platform may say of its fault, with what it was given. */
const said = "an-invented-defect of an-invented-token"

const fault = () => new Error(said)

/** The platform's cryptography, of which one function is another, until the scope ends. */
const platform = (broken: Partial<Record<"getRandomValues" | "subtle", unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const real = globalThis.crypto
      const getRandomValues = (array: Uint8Array<ArrayBuffer>) => real.getRandomValues(array)
      vi.stubGlobal("crypto", { getRandomValues, subtle: real.subtle, ...broken })
    }),
    () => Effect.sync(() => vi.unstubAllGlobals())
  )

const functions = ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const

/** The functions that are used, called on the real object, but for one. */
const subtleBut = (name: (typeof functions)[number], broken: () => unknown) => {
  const { subtle } = globalThis.crypto
  return { ...Object.fromEntries(functions.map((each) => [each, subtle[each].bind(subtle)])), [name]: broken }
}

/** All that is logged, at every level, in one text. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ annotations, cause, message, spans }) => {
      lines.push(renderings([message, cause, Cause.pretty(cause), [...annotations], [...spans]]))
    })
    return Effect.map(
      effect.pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All),
        Effect.locally(FiberRef.unhandledErrorLogLevel, Option.some(LogLevel.Debug))
      ),
      (result) => ({ result, text: lines.join("\n") })
    )
  })

describe("SharedTokenSource, on a platform whose cryptography fails", () => {
  const faults: ReadonlyArray<readonly [what: string, broken: () => Parameters<typeof platform>[0]]> = [
    ["there is none", () => ({ subtle: undefined })],
    ["getRandomValues throws", () => ({
      getRandomValues: () => {
        throw fault()
      }
    })],
    ...functions.flatMap((name) =>
      [
        [`${name} fails`, () => ({ subtle: subtleBut(name, () => Promise.reject(fault())) })],
        [`${name} throws`, () => ({
          subtle: subtleBut(name, () => {
            throw fault()
          })
        })]
      ] as const
    )
  ]

  it.effect.each(faults)(
    "%s: the token bought is the answer, of one token request, and nothing is said of it",
    ([, broken]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint()
        const store = yield* TokenStore.makeMemory
        // There is one to be opened, and to be replaced.
        const held = yield* (yield* member(source, store)).acquire(Option.none())
        const { result, text } = yield* Effect.zipRight(
          platform(broken()),
          Effect.flatMap(member(source, store), ({ acquire }) => Effect.exit(acquire(Option.some(held))))
        ).pipe(Effect.scoped, logged)
        deepStrictEqual(Exit.map(result, valueOf), Exit.succeed("token-2"))
        assert.strictEqual(yield* requests, 2)
        assert.notInclude(text, "invented")
      })
  )

  it.effect("control: what is logged is seen, also of a defect", () =>
    Effect.gen(function*() {
      const warned = yield* logged(
        Effect.catchAllCause(Effect.die(fault()), (cause) => Effect.logTrace("a line", cause))
      )
      assert.include(warned.text, said)
      const forked = yield* logged(Effect.flatMap(Effect.fork(Effect.die(fault())), Fiber.await))
      assert.include(forked.text, said)
    }))
})
