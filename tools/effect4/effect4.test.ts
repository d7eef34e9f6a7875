/** Tests what the generator for Effect 4 reports. `npm run effect4` compiles and tests what it generates. */
import { assert, describe, it } from "vitest"
import { forbidden } from "./rules.mjs"
import { transform } from "./transform.mjs"

/** A source in Effect 4, and what is wrong with it. */
const transformed = (source: string, isLibrary = true, overlay?: string) => {
  const problems: Array<string> = []
  const text = transform(source, {
    isLibrary,
    ...overlay === undefined ? {} : { overlay },
    moduleOf: (name: string) =>
      name === "FiberRef" ? undefined : { specifier: `effect/${name}`, barrel: "effect" },
    problem: (row: number, problem: string) => problems.push(`${row}: ${problem}`)
  })
  return { text, problems }
}

describe("the generator for Effect 4 reports", () => {
  it.each([
    [
      "a module that Effect 4 does not have",
      `import {\n  FiberRef\n} from "effect"\nexport const x = FiberRef.get\n`,
      "2: Effect 4 has no module FiberRef"
    ],
    [
      "a module in a doc comment that Effect 4 does not have",
      "/**\n * ```ts\n * import { FiberRef } from \"effect\"\n * FiberRef.get\n * ```\n */\nexport const a = 1\n",
      "3: Effect 4 has no module FiberRef"
    ],
    [
      "a forbidden member under any name of its module",
      `import * as Body from "@effect/platform/HttpBody"\n\nexport const x = Body.text("secret")\n`,
      `3: HttpBody.text: ${forbidden["HttpBody.text"]}`
    ],
    [
      "a forbidden member that is imported by name",
      `import { all as both } from "effect/Config"\nexport const x = both([])\n`,
      `1: Config.all: ${forbidden["Config.all"]}`
    ],
    [
      "a forbidden member that is imported by name and would be renamed",
      `import { currentTimeNanos } from "effect/Clock"\nexport const x = currentTimeNanos\n`,
      "1: Clock.currentTimeNanos: import the module, so that it is renamed"
    ],
    [
      "a forbidden member inside code that a rule drops",
      `import * as Config from "effect/Config"\nexport const x = Config.string("A").pipe(Config.validate(Config.all))\n`,
      `2: Config.all: ${forbidden["Config.all"]}`
    ]
  ])("%s, with the line", (_, source, problem) => {
    assert.deepStrictEqual(transformed(source).problems, [problem])
  })

  it("forbidden members of an overlay, except those that it is allowed", () => {
    const source =
      `import * as Clock from "effect/Clock"\nimport * as Config from "effect/Config"\n` +
      `export const x = [Clock.currentTimeNanos, Config.all]\n`
    const { problems, text } = transformed(source, true, "core/src/internal/configOf.ts")
    assert.strictEqual(text, source)
    assert.deepStrictEqual(problems, [
      `3: Clock.currentTimeNanos: ${forbidden["Clock.currentTimeNanos"]}`
    ])
    assert.lengthOf(transformed(source, true, "core/src/internal/other.ts").problems, 2)
    assert.isEmpty(transformed(source, false).problems)
  })
})
