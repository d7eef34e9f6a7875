/** The code in the documentation compiles and is the code that the tests run. The tests that it cites exist. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Scenario } from "@store-api/emulator"
import { assert, describe, it } from "vitest"
import { transform } from "../effect4/transform.mjs"
import { root, run } from "../support/command.js"
import {
  blocksInPages,
  blocksInSources,
  type CodeBlock,
  codes,
  fenced,
  filesOf,
  read,
  rows,
  sectionOf
} from "../support/pages.js"
import { pairsOf } from "../support/pairs.mjs"
import { catalog, readJson } from "../workspace/published.mjs"

const { devDependencies: installed } = readJson("tools/effect4/workspace/package.json") as {
  readonly devDependencies: Readonly<Record<string, string>>
}

/** The problems that the compiler finds in code blocks, from a process of its own. */
const check = async (blocks: ReadonlyArray<CodeBlock>): Promise<ReadonlyArray<string>> => {
  const script = join(root, "tools/docs/compileBlocks.mjs")
  const input = JSON.stringify(blocks)
  const { status, stderr, stdout } = await run(process.execPath, [script], { input })
  assert.strictEqual(status, 0, stderr)
  return JSON.parse(stdout) as ReadonlyArray<string>
}

describe("the code in the documentation", () => {
  it("compiles, and each block names its language", async () => {
    const blocks = [...blocksInPages(), ...blocksInSources()]
    const inTypeScript = blocks.filter(({ language }) => language === "ts")
    assert.isAbove(inTypeScript.length, 100)
    // The code for Effect 4 is generated: no comment says how to change that for Effect 3.
    assert.isEmpty(
      inTypeScript.filter(({ code }) => /\/\/.*Effect [34]/.test(code)).map(({ file, line }) =>
        `${file}:${line}`
      )
    )
    const languages = new Set(blocks.map(({ language }) => language))
    assert.includeMembers(["ts", "json", "sh", "console", "dockerfile", "mermaid", "text"], [
      ...languages
    ])
    const internal = `import * as internal from "@store-api/core/internal/provider/tokenState"`
    const closed = { file: "closed", line: 1, language: "ts", code: internal }
    const problems = await check([...inTypeScript, closed])
    assert.deepStrictEqual(
      problems.map((problem) => problem.replace(/^closed:.*/, "closed")),
      ["closed"]
    )
  })

  it("is the same for both majors of Effect, or shown for both", () => {
    const bodyOf = (code: string) =>
      code.replace(/^import [^"]*"[^"]*"$/gm, "").replace(/\s+/g, "")
    const inEffect4 = (code: string) =>
      transform(code, {
        moduleOf: (name: string) => ({ specifier: `effect/${name}`, barrel: "effect" }),
        problem: (row: number, problem: string) => assert.fail(`${row}: ${problem}`)
      }, true)
    const isStale = (
      { effect3, effect4 = effect3 }: ReturnType<typeof pairsOf>[number]
    ) =>
      bodyOf(inEffect4(effect3)) !== bodyOf(effect4) ||
      effect4.includes("\"@effect/platform\"")
    const pages = filesOf(
      "README.md",
      "docs/*.md",
      "packages/*/README.md",
      ":!docs/reference/api"
    )
    const blocks = pages.flatMap((page) =>
      pairsOf(read(page)).map((pair) => ({ page, ...pair }))
    )
    assert.deepStrictEqual(blocks.filter(isStale), [])
    const pairs = blocks.filter(({ effect4 }) => effect4 !== undefined)
    assert.isAbove(pairs.length, 8)
    const changed = pairs.map(({ effect3, effect4 }) => ({
      effect3: `${effect3}changed()`,
      effect4
    }))
    assert.lengthOf(changed.filter(isStale), pairs.length, "control: finds each change")
  })

  it("shows the caches of docs/guides/migrating.md as the tests run them", () => {
    const page = "docs/guides/migrating.md"
    const shown = fenced(page, sectionOf(page, "Before")).flatMap(({ code }) =>
      code.split(/\n\n(?=export )/).slice(1)
    )
    // The test itself creates the client around them.
    const caches = new Set(shown.filter((code) => !code.startsWith("export const withToken")))
    assert.strictEqual(caches.size, 4)
    for (const code of caches) assert.include(read("examples/test/handRolled.ts"), code)
  })

  it("shows the error handlers of docs/guides/without-effect.md as the tests run them", () => {
    const page = "docs/guides/without-effect.md"
    const handlers = fenced(page, sectionOf(page, "Errors"))
      .filter(({ code }) => code.includes("responseTo"))
      // Without the imports.
      .map(({ code }) => code.slice(code.indexOf("\n\n") + 2))
    assert.lengthOf(handlers, 5)
    for (const code of handlers) assert.include(read("examples/test/errorHandlers.ts"), code)
  })

  it.each(filesOf("README.md", "packages/*/README.md", "docs/tutorial/*.md"))(
    "installs the versions that the tests use: %s",
    (page) => {
      const commands = [...read(page).matchAll(/^npm install (?:-D )?([^#\n]+)/gm)]
      for (const word of commands.flatMap(([, words = ""]) => words.trim().split(" "))) {
        const [, name = "", range = ""] = /^(@?[^@]+)@[\^~]?(.+)$/.exec(word) ?? []
        if (word.startsWith("@store-api/")) continue
        const tested = [catalog[name], installed[name]]
          .map((version) => version?.replace(/^[\^~]/, ""))
        assert.isTrue(tested.some((version) => `${version}.`.startsWith(`${range}.`)), word)
      }
      const majors = new Set(
        [...read(page).matchAll(/^npm install .* effect@\^(\d)/gm)].map(([, major]) => major)
      )
      assert.notStrictEqual(majors.size, 1, "the commands are for both majors of Effect")
    }
  )
})

/** `“title of the test” in `file``, as the pages write it. A long title is cut: `“its beginning…”`. */
const citedTests = (text: string) =>
  [...text.matchAll(/“([^”]+)”\s+in\s+`([^`]+)`/g)].map(([, title = "", file = ""]) => ({
    title: title.replace(/\s+/g, " "),
    file
  }))

describe("docs/evidence", () => {
  it.each(filesOf("docs/evidence/*.md"))(
    "%s: the tests that it cites exist in the named files",
    (page) => {
      const cited = citedTests(read(page))
      const missing = cited.filter(({ file, title }) => {
        // The title is the first argument of a call.
        const beginning = title.replace(/…$/, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
        const isCut = title.endsWith("…")
        const declared = new RegExp(`\\(\\s*["\`]${beginning}${isCut ? "" : "[\"\`]"}`, "g")
        const count = existsSync(join(root, file))
          ? read(file).match(declared)?.length ?? 0
          : 0
        return isCut ? count !== 1 : count === 0
      })
      assert.deepStrictEqual(missing, [])
      // Only a citation has such quotation marks.
      assert.lengthOf(cited, read(page).split("”").length - 1)
    }
  )

  // Core's tests check these results with each client.
  it("behaviour.md has each scenario exactly once with its result, and a test or scenarios in each row", () => {
    const listed = rows(read("docs/evidence/behaviour.md")).flatMap((row) => {
      const evidence = row.at(-1) ?? ""
      const patterns = codes(evidence).filter((code) => /^(token|api)\/[\w.*-]+$/.test(code))
      assert.isTrue(citedTests(evidence).length > 0 || patterns.length > 0, row.join(" | "))
      return patterns.flatMap((pattern) => {
        const [start = "", rest] = pattern.split("*")
        const names = Scenario.names.filter((name) =>
          rest === undefined ? name === start : name.startsWith(start)
        )
        assert.isNotEmpty(names, pattern)
        return names.map((name) => `${name}: ${row[1]?.replaceAll("`", "") ?? ""}`)
      })
    })
    assert.deepStrictEqual(
      [...listed].sort(),
      Scenario.names.map((name) =>
        `${name}: ${Scenario.describeOutcome(Scenario.all[name].outcome)}`
      ).sort()
    )
  })
})
