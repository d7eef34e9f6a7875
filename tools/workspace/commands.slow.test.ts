/** The commands of package.json, as processes. Needs `npm run build`. */
import { ESLint } from "eslint"
import tseslint from "typescript-eslint"
import { assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"
import { filesOf } from "../repository/support/pages.js"

describe("npm start", { timeout: 60_000 }, () => {
  const demo = (env: Record<string, string> = {}) => run(process.execPath, ["examples/dist/demo.js"], { env })

  it("exits with code 0 after the last line, without colours in a pipe", async () => {
    const { status, stderr, stdout } = await demo()
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.match(stdout, /token 3 +━+╌*> in use\n[^]* a call\n$/)
    assert.notInclude(stdout, "\u001b")
  })

  it("exits with code 1 and one sentence when variables are missing", async () => {
    const { status, stderr, stdout } = await demo({ STORE_API_URL: "https://store.example" })
    assert.deepStrictEqual([status, stdout], [1, ""])
    assert.match(stderr, /^STORE_API_URL is set, [^\n]+\.\n$/)
  })

  it.each([
    ["18.20.8", "This needs Node 20.19 or newer, and this is 18.20.8: install a newer Node.\n"],
    ["20.18.3", "This needs Node 20.19 or newer, and this is 20.18.3: install a newer Node.\n"],
    ["20.19.0", ""],
    ["24.1.0", ""]
  ])("on Node %s, says whether it is too old", async (version, sentence) => {
    const fake = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
    const preload = `data:text/javascript,${encodeURIComponent(fake)}`
    const { status, stderr } = await run(process.execPath, ["--import", preload, "tools/workspace/require-node.mjs"])
    assert.deepStrictEqual([status, stderr], [sentence === "" ? 0 : 1, sentence])
  })
})

describe("npm run lint", { timeout: 60_000 }, () => {
  // Without type information, which takes seconds to load.
  const eslint = new ESLint({ cwd: root, overrideConfig: tseslint.configs.disableTypeChecked as never })

  const banned = ["bu", "ys"].join("")

  it("ignores no source of the repository, and no Markdown that is written by hand", async () => {
    // The overlays import Effect 4, which typed rules cannot resolve here. The templates have placeholders.
    const left = [":!docs/reference/api", ":!tools/effect4/overlay"]
    const files = filesOf("*.ts", "*.mjs", "*.cjs", "*.js", "*.md", ...left)
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
    ["prose/english", "tools/workspace/run.mjs", `/** It ${banned} a token. */\n`],
    ["prose/markdown-format", "CONTRIBUTING.md", "* a\n"]
  ])("finds a breach of %s in %s", async (rule, filePath, code) => {
    const [result] = await eslint.lintText(code, { filePath })
    assert.include(result?.messages.map(({ ruleId }) => ruleId) ?? [], rule)
  })
})
