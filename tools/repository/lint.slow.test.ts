/** `npm run lint` reads all sources, and each rule finds a violation. */
import { ESLint } from "eslint"
import tseslint from "typescript-eslint"
import { assert, describe, it } from "vitest"
import { root, trackedFiles } from "./support/command.js"

// Without type information, which takes seconds to load and which no rule here needs.
const eslint = new ESLint({ cwd: root, overrideConfig: tseslint.configs.disableTypeChecked as never })

const banned = "Meanwhile"

describe("npm run lint", { timeout: 60_000 }, () => {
  it("ignores no source of the repository, and no Markdown that is written by hand", async () => {
    // The overlays import Effect 4, which typed rules cannot resolve here. `npm run effect4` checks them.
    const left = [":!docs/reference/api", ":!tools/effect4/overlay"]
    const files = trackedFiles("*.ts", "*.mjs", "*.cjs", "*.js", "*.md", ...left)
    assert.isAbove(files.length, 200)
    const ignored = await Promise.all(files.map((file) => eslint.isPathIgnored(file)))
    assert.deepStrictEqual(files.filter((_, index) => ignored[index]), [])
  })

  it.each([
    ["no-restricted-syntax", "packages/core/src/index.ts", "export const now = Date.now()\n"],
    [
      "no-restricted-imports",
      "packages/redis/src/index.ts",
      `import { Effect } from "effect"\nexport const e = Effect.void\n`
    ],
    ["@effect/dprint", "tools/workspace/run.mjs", "export const a = 1;\n"],
    ["prose/english", "tools/workspace/run.mjs", `/** ${banned} the callers wait. */\n`],
    ["prose/english", "CONTRIBUTING.md", `${banned} the callers wait.\n`],
    ["prose/markdown-format", "CONTRIBUTING.md", "* a\n"],
    ["max-len", "tools/workspace/run.mjs", `/** ${"word ".repeat(24)}*/\n`]
  ])("finds a breach of %s in %s", async (rule, filePath, code) => {
    const [result] = await eslint.lintText(code, { filePath })
    assert.include(result?.messages.map(({ ruleId }) => ruleId) ?? [], rule)
  })

  it("checks promises with type information", async () => {
    const config = await new ESLint({ cwd: root }).calculateConfigForFile("examples/src/demo.ts") as {
      readonly rules: Readonly<Record<string, ReadonlyArray<unknown>>>
    }
    assert.strictEqual(config.rules["@typescript-eslint/no-floating-promises"]?.[0], 2)
  })
})
