/** Tests the rules of the Effect 4 line on small sources. `npm run effect4` tests the packages that they generate. */
import { assert, describe, it } from "vitest"
import { forbidden, members, patterns } from "./rules.mjs"
import { transform } from "./transform.mjs"

const folders: Readonly<Record<string, string>> = { HttpClient: "effect/http", TestClock: "effect/testing" }
const gone = ["FiberRef"]

/** A source in Effect 4, and what is wrong with it. */
const transformed = (source: string, isLibrary = false) => {
  const problems: Array<string> = []
  const text = transform(source, {
    isLibrary,
    moduleOf: (name: string) => {
      const folder = folders[name] ?? "effect"
      return gone.includes(name) ? undefined : { specifier: `${folder}/${name}`, barrel: folder }
    },
    problem: (row: number, problem: string) => problems.push(`${row}: ${problem}`)
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
    assert.deepStrictEqual(problems, ["1: Effect 4 has no module FiberRef"])
  })

  it("reports forbidden members of the library under any name of their module, with the line", () => {
    const source = `import * as Body from "@effect/platform/HttpBody"\n\nexport const x = Body.text("secret")\n`
    assert.match(transformed(source, true).problems.join(), /^3: HttpBody\.text: Effect 4 keeps the text/)
    assert.deepStrictEqual(transformed(source).problems, [])
    assert.deepStrictEqual(transformed(source.replace("text", "uint8Array"), true).problems, [])
  })

  it("has no rule that produces a forbidden member", () => {
    const produced = [...Object.values(members), ...Object.values(patterns).map(String)].join("\n")
    for (const member of Object.keys(forbidden)) assert.notMatch(produced, new RegExp(`\\b${member}\\b`), member)
    assert.match(produced, /\bClock\.monotonicTimeNanos\b/)
  })
})
