/** Tests the rules of the Effect 4 line on small sources. `npm run effect4` tests the packages that they generate. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { strangers, unused } from "./generate.mjs"
import { allowed, forbidden, members, modules, omitted, patterns, properties, texts } from "./rules.mjs"
import { transform } from "./transform.mjs"

const folders: Readonly<Record<string, string>> = { HttpClient: "effect/http", TestClock: "effect/testing" }
const gone = ["FiberRef"]

/** A source in Effect 4, and what is wrong with it. */
const transformed = (source: string, isLibrary = false, overlay?: string) => {
  const problems: Array<string> = []
  const text = transform(source, {
    isLibrary,
    ...overlay === undefined ? {} : { overlay },
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

  it("reports a module that Effect 4 does not have, with the line", () => {
    const { problems } = transformed(
      `import { Effect } from "effect"\nimport * as Option from "effect/Option"\n` +
        `import * as FiberRef from "effect/FiberRef"\nexport const x = [Effect.void, Option.none(), FiberRef.make(1)]\n`
    )
    assert.deepStrictEqual(problems, ["3: Effect 4 has no module FiberRef"])
    const named = transformed(
      `import {\n  Effect,\n  FiberRef\n} from "effect"\nimport {\n  make\n} from "effect/FiberRef"\n` +
        `export const x = [Effect.void, FiberRef.get, make(1)]\n`
    )
    assert.deepStrictEqual(named.problems, [
      "3: Effect 4 has no module FiberRef",
      "6: Effect 4 has no module FiberRef, from which make is imported"
    ])
  })

  it("reports a module that a doc comment uses, with the line of the file", () => {
    const { problems } = transformed(
      "export const a = 1\n\n/**\n * ```ts\n * import { FiberRef } from \"effect\"\n *\n" +
        " * const x = FiberRef.make(1)\n * ```\n */\nexport const b = 1\n"
    )
    assert.deepStrictEqual(problems, ["5: Effect 4 has no module FiberRef"])
  })

  it("reports a package that is not installed for Effect 4, with the line of the source", () => {
    const source =
      `import { Effect } from "effect"\nimport * as Option from "effect/Option"\nimport { x } from "left-pad"\n`
    const { text } = transformed(`${source}export const y = [Effect.void, Option.none(), x]\n`)
    assert.deepStrictEqual(strangers(text, source, new Set(["effect"])), [
      [3, `"left-pad" is not installed for Effect 4`]
    ])
    assert.deepStrictEqual(strangers(text, source, new Set(["effect", "left-pad"])), [])
  })

  it("reports forbidden members of the library under any name of their module, with the line", () => {
    const source = `import * as Body from "@effect/platform/HttpBody"\n\nexport const x = Body.text("secret")\n`
    assert.match(transformed(source, true).problems.join(), /^3: HttpBody\.text: Effect 4 keeps the text/)
    assert.deepStrictEqual(transformed(source).problems, [])
    assert.deepStrictEqual(transformed(source.replace("text", "uint8Array"), true).problems, [])
  })

  it("reports forbidden members of the library that are imported by name", () => {
    const source = `import { Effect } from "effect"\nimport {\n  all as both\n} from "effect/Config"\n` +
      `export const x = Effect.as(both([]), 1)\n`
    assert.match(transformed(source, true).problems.join(), /^3: Config\.all: Effect 4 names only the first/)
    assert.deepStrictEqual(transformed(source).problems, [])
    assert.deepStrictEqual(transformed(source.replace("all as", "succeed as"), true).problems, [])
  })

  it("reports a subtraction of durations, and does not return a negative distance", () => {
    const difference = `import * as Duration from "effect/Duration"\nexport const x = Duration.subtract(a, b)\n`
    assert.match(transformed(difference, true).problems.join(), /^2: Duration\.subtract: Effect 4 returns a negative/)
    const { text } = transformed(
      `import * as DateTime from "effect/DateTime"\nexport const x = DateTime.distanceDuration(a, b)\n`
    )
    assert.include(text, "x = Duration.abs(DateTime.distance(a, b))")
  })

  it("renames a forbidden member that has a new name, and reports it where it is imported by name", () => {
    const renamed = transformed(
      `import * as Clock from "effect/Clock"\nexport const x = Clock.currentTimeNanos\n`,
      true
    )
    assert.deepStrictEqual(renamed.problems, [])
    assert.include(renamed.text, "x = Clock.monotonicTimeNanos")
    const named = transformed(
      `import { currentTimeNanos } from "effect/Clock"\nexport const x = currentTimeNanos\n`,
      true
    )
    assert.deepStrictEqual(named.problems, ["1: Clock.currentTimeNanos: import the module, so that it is renamed"])
  })

  it("reports forbidden members inside code that a rule drops", () => {
    const source = `import * as Config from "effect/Config"\n` +
      `export const x = Config.string("A").pipe(Config.validate(Config.all), Config.option)\n`
    assert.match(transformed(source, true).problems.join(), /^2: Config\.all/)
  })

  it("reports forbidden members of an overlay, except an allowed one, and changes nothing", () => {
    const source = `import * as Clock from "effect/Clock"\nimport * as Config from "effect/Config"\n` +
      `import { HttpBody } from "effect/http"\nexport const x = [Clock.currentTimeNanos, Config.all, HttpBody.text]\n`
    const { problems, text } = transformed(source, true, "core/src/internal/other.ts")
    assert.strictEqual(text, source)
    assert.deepStrictEqual(problems.map((problem) => problem.split(": ", 2).join(": ")), [
      "4: Clock.currentTimeNanos",
      "4: Config.all",
      "4: HttpBody.text"
    ])
    const [exception = ""] = Object.keys(allowed)
    assert.strictEqual(exception, "core/src/internal/configOf.ts: Config.all")
    assert.lengthOf(transformed(source, true, "core/src/internal/configOf.ts").problems, 2)
  })

  it("reports a rule that matches nothing, with its line", () => {
    const rules = [
      ...[modules, members, patterns, properties, omitted, allowed].flatMap(Object.keys),
      ...texts.map(([from]) => from)
    ]
    assert.deepStrictEqual(unused(new Map(rules.map((rule) => [rule, 1]))), [])
    const lines = readFileSync(new URL("./rules.mjs", import.meta.url), "utf8").split("\n")
    // The first three have the name of another rule.
    const dead = {
      Either: "\"Result\"",
      "Duration.lessThanOrEqualTo": "lessThan: ",
      left: "failure",
      "Layer.discard($layer)": "\"$layer\""
    }
    for (const [rule, there] of Object.entries(dead)) {
      const [problem = "", ...others] = unused(
        new Map(rules.filter((other) => other !== rule).map((rule) => [rule, 1]))
      )
      assert.deepStrictEqual(others, [])
      const [, line] = /^tools\/effect4\/rules\.mjs:(\d+): nothing in the sources is "(.*)", so that/.exec(problem) ??
        []
      assert.include(lines[Number(line) - 1], there, problem)
      assert.include(problem, `"${rule}"`)
    }
  })

  it("gives the same text for the same source", () => {
    const source =
      `import { Effect, Either } from "effect"\nexport const x = Effect.dieMessage(Either.left(Effect.yieldNow()))\n`
    assert.strictEqual(transformed(source).text, transformed(source).text)
  })

  it("has no rule that produces a forbidden member", () => {
    const produced = [...Object.values(members), ...Object.values(patterns).map(String)].join("\n")
    for (const member of Object.keys(forbidden)) assert.notMatch(produced, new RegExp(`\\b${member}\\b`), member)
    assert.match(produced, /\bClock\.monotonicTimeNanos\b/)
  })
})
