/** The rules of the Effect 4 line, on small sources. What they make of the packages is checked by `npm run effect4`. */
import { assert, describe, it } from "vitest"
import { forbiddenIn } from "./forbidden.mjs"
import { transform } from "./transform.mjs"

const folders: Readonly<Record<string, string>> = { HttpClient: "effect/http", TestClock: "effect/testing" }
const gone = ["FiberRef"]

/** A source in Effect 4, and what is wrong with it. */
const transformed = (source: string) => {
  const problems: Array<string> = []
  const text = transform(source, {
    moduleOf: (name: string) => {
      const folder = folders[name] ?? "effect"
      return gone.includes(name) ? undefined : { specifier: `${folder}/${name}`, barrel: folder }
    },
    problem: (_: number, problem: string) => problems.push(problem)
  })
  return { text, problems }
}

describe("the generator of the Effect 4 line", () => {
  it("renames modules and members, and what is imported", () => {
    const { problems, text } = transformed(
      `import * as Either from "effect/Either"\nimport type * as Option from "effect/Option"\n` +
        `export const none = (o: Option.Option<string>) => Either.left(o)\n`
    )
    assert.deepStrictEqual(problems, [])
    assert.include(text, `import * as Result from "effect/Result"`)
    assert.include(text, `import type * as Option from "effect/Option"`)
    assert.include(text, "=> Result.fail(o)")
  })

  it("rewrites by patterns, inner ones too, and imports what they need", () => {
    const { text } = transformed(
      `import { Effect } from "effect"\n` +
        `export const x = Effect.dieMessage(String(Effect.withClock(Effect.yieldNow(), clock)))\n`
    )
    assert.include(text, `import { Clock, Effect } from "effect"`)
    assert.include(text, "Effect.die(new Error(String(Effect.provideService(Effect.yieldNow, Clock.Clock, clock))))")
  })

  it("rewrites the code in doc comments", () => {
    const { text } = transformed(
      "/**\n * ```ts\n * import { Effect } from \"effect\"\n *\n * const x = Effect.catchAll(y, f)\n * ```\n */\nexport const a = 1\n"
    )
    assert.include(text, " * const x = Effect.catch(y, f)\n * ```")
  })

  it("does not rename what only looks like a module or a member", () => {
    const source = `const Effect = { catchAll: (x: unknown) => x }\nexport const x = Effect.catchAll(1)\n`
    assert.strictEqual(transformed(source).text, source)
  })

  it("says which module Effect 4 does not have", () => {
    const { problems } = transformed(
      `import * as FiberRef from "effect/FiberRef"\nexport const x = FiberRef.make(1)\n`
    )
    assert.deepStrictEqual(problems, ["Effect 4 has no module FiberRef"])
  })

  it("finds forbidden members in both lines, under any name of their module", () => {
    const text = `import * as Body from "@effect/platform/HttpBody"\n\nexport const x = Body.text("secret")\n`
    const [found, ...others] = forbiddenIn(text, "effect3")
    assert.deepStrictEqual([found?.row, others], [3, []])
    assert.match(found?.problem ?? "", /^HttpBody\.text is forbidden: /)
    const clock =
      `export const now = (clock: { currentTimeNanosUnsafe: () => bigint }) => clock.currentTimeNanosUnsafe()\n`
    assert.match(forbiddenIn(clock, "effect4")[0]?.problem ?? "", /^currentTimeNanosUnsafe is forbidden: /)
    assert.deepStrictEqual(forbiddenIn(text.replace("text", "uint8Array"), "effect3"), [])
  })
})
