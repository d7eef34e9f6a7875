/** Tests the generator of the Effect 4 line on small sources. `npm run effect4` tests what it generates. */
import { assert, describe, it } from "vitest"
import { strangers, unexplained, unused } from "./generate.mjs"
import { allowed, forbidden, members, modules, omitted, patterns, properties, texts } from "./rules.mjs"
import { transform } from "./transform.mjs"

const folders: Readonly<Record<string, string>> = { HttpClient: "effect/http", TestClock: "effect/testing" }

/** A source in Effect 4, and what is wrong with it. */
const transformed = (source: string, { isLibrary = true, overlay }: { isLibrary?: boolean; overlay?: string } = {}) => {
  const problems: Array<string> = []
  const text = transform(source, {
    isLibrary,
    ...overlay === undefined ? {} : { overlay },
    moduleOf: (name: string) => {
      const folder = folders[name] ?? "effect"
      return name === "FiberRef" ? undefined : { specifier: `${folder}/${name}`, barrel: folder }
    },
    problem: (row: number, problem: string) => problems.push(`${row}: ${problem}`)
  })
  return { text, problems }
}

const inDocComment = (code: string) =>
  `export const a = 1\n\n/**\n * \`\`\`ts\n${code.replace(/^/gm, " * ").replaceAll(/ +$/gm, "")}\n * \`\`\`\n */\n`

describe("the generator of the Effect 4 line", () => {
  it.each([
    [
      "modules, members and what is imported",
      `import * as Either from "effect/Either"\nexport const x = Either.left(o)\n`,
      `import * as Result from "effect/Result"\nexport const x = Result.fail(o)\n`
    ],
    [
      "patterns, inner ones too, and imports what they need",
      `import { Effect } from "effect"\nexport const x = Effect.dieMessage(String(Effect.withClock(Effect.yieldNow(), clock)))\n`,
      `import { Clock, Effect } from "effect"\n` +
      "export const x = Effect.die(new Error(String(Effect.provideService(Effect.yieldNow, Clock.Clock, clock))))\n"
    ],
    [
      "a member with another meaning",
      `import * as Clock from "effect/Clock"\nexport const x = Clock.currentTimeNanos\n`,
      `import * as Clock from "effect/Clock"\nexport const x = Clock.monotonicTimeNanos\n`
    ],
    [
      "the code in doc comments",
      inDocComment(`import { Effect } from "effect"\n\nconst x = Effect.catchAll(y, f)`),
      inDocComment(`import { Effect } from "effect"\n\nconst x = Effect.catch(y, f)`)
    ],
    [
      "nothing that only looks like a module or a member",
      `const Effect = { catchAll: (x: unknown) => x }\nexport const x = Effect.catchAll(1)\n`,
      `const Effect = { catchAll: (x: unknown) => x }\nexport const x = Effect.catchAll(1)\n`
    ]
  ])("rewrites %s", (_, source, text) => {
    assert.deepStrictEqual(transformed(source), { problems: [], text })
  })

  it.each([
    [
      "a module that Effect 4 does not have",
      `import {\n  FiberRef\n} from "effect"\nimport {\n  make\n} from "effect/FiberRef"\nexport const x = [FiberRef.get, make(1)]\n`,
      ["2: Effect 4 has no module FiberRef", "5: Effect 4 has no module FiberRef, from which make is imported"]
    ],
    [
      "one in a doc comment",
      inDocComment(`import { FiberRef } from "effect"\n\nconst x = FiberRef.make(1)`),
      ["5: Effect 4 has no module FiberRef"]
    ],
    [
      "a forbidden member under any name of its module",
      `import * as Body from "@effect/platform/HttpBody"\n\nexport const x = Body.text("secret")\n`,
      [`3: HttpBody.text: ${forbidden["HttpBody.text"]}`]
    ],
    [
      "one that is imported by name",
      `import { all as both } from "effect/Config"\nexport const x = both([])\n`,
      [`1: Config.all: ${forbidden["Config.all"]}`]
    ],
    [
      "one that is imported by name and would be renamed",
      `import { currentTimeNanos } from "effect/Clock"\nexport const x = currentTimeNanos\n`,
      ["1: Clock.currentTimeNanos: import the module, so that it is renamed"]
    ],
    [
      "one inside code that a rule drops",
      `import * as Config from "effect/Config"\nexport const x = Config.string("A").pipe(Config.validate(Config.all))\n`,
      [`2: Config.all: ${forbidden["Config.all"]}`]
    ]
  ])("reports %s, with the line", (_, source, problems) => {
    assert.deepStrictEqual(transformed(source).problems, problems)
  })

  it("changes no overlay, and reports its forbidden members, except an allowed one", () => {
    const source = `import * as Clock from "effect/Clock"\nimport * as Config from "effect/Config"\n` +
      `export const x = [Clock.currentTimeNanos, Config.all]\n`
    const { problems, text } = transformed(source, { overlay: "core/src/internal/configOf.ts" })
    assert.strictEqual(text, source)
    assert.deepStrictEqual(problems, [`3: Clock.currentTimeNanos: ${forbidden["Clock.currentTimeNanos"]}`])
    assert.lengthOf(transformed(source, { overlay: "core/src/internal/other.ts" }).problems, 2)
    assert.deepStrictEqual(transformed(source, { isLibrary: false }).problems, [])
  })

  it("reports a package that is not installed for Effect 4", () => {
    const source = `import { Effect } from "effect"\nimport { x } from "left-pad"\n`
    assert.deepStrictEqual(strangers(source, source, new Set(["effect"])), [
      [2, `"left-pad" is not installed for Effect 4`]
    ])
  })

  it("reports each rule that matches nothing", () => {
    const rules = [modules, members, patterns, properties, omitted, allowed].flatMap(Object.keys)
      .concat(texts.map(([from]) => from ?? ""))
    assert.deepStrictEqual(unused(new Map()).map((problem) => /is "([^]*)"$/.exec(problem)?.[1]), rules)
    assert.deepStrictEqual(unused(new Map(rules.map((rule) => [rule, 1]))), [])
  })

  it("has no rule that produces a forbidden member", () => {
    const produced = [...Object.values(members), ...Object.values(patterns).map(String)].join("\n")
    for (const member of Object.keys(forbidden)) assert.notMatch(produced, new RegExp(`\\b${member}\\b`), member)
  })

  it.each([
    ["", "effect", [
      "no comment in or above: const x = Layer.unwrapEffect(y)",
      "no comment says to write: const x = Layer.unwrap(y)"
    ]],
    [" // Effect 4: Layer.unwrap", "effect", []],
    [" // Effect 4: Layer.wrap", "effect", [
      "no comment says to write: const x = Layer.unwrap(y)",
      "not in the code for Effect 4: Layer.wrap"
    ]],
    [" // Effect 4: unwrap(", "other", [`no comment says to import Layer from "effect"`]]
  ])("reports a difference that no comment in the docs explains: %s", (comment, from, problems) => {
    const code = `import { Layer } from "${from}"\nconst x = Layer.unwrapEffect(y)${comment}\n`
    assert.deepStrictEqual(unexplained(code, `import { Layer } from "effect"\nconst x = Layer.unwrap(y)\n`), problems)
  })
})
