/** ESLint over everything; fails too when a source was passed over, or when the rules would find nothing. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { ESLint } from "eslint"

const eslint = new ESLint()
const results = await eslint.lintFiles(["."])
const formatter = await eslint.loadFormatter("stylish")
process.stdout.write(await formatter.format(results))

const seen = new Set(results.map(({ filePath }) => filePath))
const generated = /(^|[\\/])(node_modules|dist|coverage|\.tsbuild|\.git)([\\/]|$)/
const sourcesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (generated.test(entry.name)) return []
    return entry.isDirectory() ? sourcesIn(path) : /\.(ts|mjs)$/.test(path) ? [path] : []
  })
const expected = sourcesIn(process.cwd())
const missed = expected.filter((path) => !seen.has(path))

const rulesOf = async (code, filePath) => {
  const [{ messages }] = await eslint.lintText(code, { filePath })
  return messages.map(({ ruleId }) => ruleId)
}

const controls = [
  ["no-restricted-syntax", "export const now = Date.now()\n", "packages/core/src/index.ts"],
  [
    "no-restricted-imports",
    "import { Effect } from \"effect\"\nexport const e = Effect.void\n",
    "packages/core/src/index.ts"
  ],
  ["@typescript-eslint/no-floating-promises", "Promise.resolve(1)\n", "examples/src/demo.ts"],
  ["@effect/dprint", "export const a = 1;\n", "tools/workspace/start.mjs"]
]
const silent = []
for (const [rule, code, file] of controls) if (!(await rulesOf(code, file)).includes(rule)) silent.push(rule)

const problems = results.reduce((sum, { errorCount, warningCount }) => sum + errorCount + warningCount, 0)
process.stdout.write(`${seen.size} files, ${problems} problems; ${expected.length} expected, ${missed.length} missed\n`)
for (const path of missed) process.stdout.write(`not looked at: ${path}\n`)
for (const rule of silent) process.stdout.write(`found nothing where there was something: ${rule}\n`)
process.exitCode = problems + missed.length + silent.length > 0 || expected.length < 60 ? 1 : 0
