/**
 * `npm run effect4`: generates the packages of the Effect 4 line, builds them, and runs their tests on Effect 4.
 *
 *   node tools/effect4/run.mjs [--out FOLDER] [--newest] [--no-tests] [TESTS…]
 *
 * `--out` also packs them into FOLDER, installs the tarballs and runs programs with them. TESTS are parts of the paths
 * of test files; the default is all. `--newest` first installs the newest minor of Effect 4 instead of the lockfile's.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { delimiter, dirname, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { build, install, pnpm, root, tool } from "../workspace/workspace.mjs"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    newest: { type: "boolean", default: false },
    "no-tests": { type: "boolean", default: false },
    out: { type: "string" }
  }
})

const folder = "tools/effect4/line"

const newest = (name) => `${name === "effect" ? name : `@effect/${name}`}@^4`
install()
install(folder)
if (values.newest) pnpm(["--dir", folder, "update", ...["effect", "platform-node", "opentelemetry"].map(newest)])
// These need what has just been installed.
const { generate, line, packages, partsOf } = await import("./generate.mjs")
const { nodeOf } = await import("./node.mjs")

const problems = await generate()
for (const problem of problems) process.stderr.write(`${problem}\n`)
if (problems.length > 0) process.exit(1)

const projects = packages.flatMap((name) =>
  partsOf(name).map((part) => `${folder}/packages/${name}/tsconfig.${part}.json`)
)
tool("tsc", ["-b", ...projects, `${folder}/packages/examples`])

const node = await nodeOf("22.19.0")

if (!values["no-tests"]) {
  const { status } = spawnSync(node, [join(line, "node_modules/vitest/vitest.mjs"), "run", ...positionals], {
    cwd: line,
    stdio: "inherit",
    // Tests start `node` by its name.
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
  })
  if (status !== 0) process.exit(status ?? 1)
}

if (values.out !== undefined) {
  const { pack } = await import("./pack.mjs")
  const { problems, tarballs } = await pack(resolve(root, values.out))
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  if (problems.length > 0) process.exit(1)
  if (!values["no-tests"]) {
    const { consume } = await import("./consumer.mjs")
    build()
    await consume(node, tarballs)
  }
}
process.exit(0)
