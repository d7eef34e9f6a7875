/**
 * `npm run effect4`: generates and compiles the packages for Effect 4, and runs their tests on Effect 4.
 *
 * TESTS are parts of the paths of test files; the default is all. `--quick` leaves out all but one server of the
 * interoperability suite. `--newest` first installs the newest minor of Effect 4 instead of the lockfile's.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { delimiter, dirname, join } from "node:path"
import { install, parsed, pnpm, root } from "../workspace/workspace.mjs"

const usage = "npm run effect4 -- [--quick] [--newest] [TESTS…]"
const { positionals, values: { newest, quick } } = parsed(usage, {
  allowPositionals: true,
  options: {
    newest: { type: "boolean", default: false },
    quick: { type: "boolean", default: false }
  }
})

install()
// A range in its manifest limits the update to this major. The other modules read the manifest when they are loaded.
if (newest) {
  pnpm([
    "--dir",
    "tools/effect4/workspace",
    "update",
    "effect",
    "@effect/platform-node",
    "@effect/opentelemetry"
  ])
}
// These need what was just installed.
const { buildEffect4, nodeOf, workspace } = await import("./generate.mjs")

buildEffect4({ checked: true })

const node = nodeOf()

/** Tests and npm start `node` by its name. */
process.env.PATH = `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`

const isWanted = (path) =>
  positionals.length === 0 || positionals.some((name) => path.includes(name))
const filter = positionals.length === 0 ? [] : [...positionals, "--passWithNoTests"]
// One server that no Debian package provides.
const oneServer = ["contract", "-t", "^oidc-provider"]
const test = (folder, tests) => {
  const { status } = spawnSync(node, [
    join(folder, "node_modules/vitest/vitest.mjs"),
    "run",
    ...tests
  ], {
    cwd: folder,
    stdio: "inherit",
    env: { ...process.env, STORE_API_EFFECT4: workspace }
  })
  if (status !== 0) process.exit(status ?? 1)
}

test(workspace, filter)
if (isWanted("packages/interop/test/contract.test.ts")) {
  test(workspace, [
    "--config",
    "packages/interop/vitest.config.ts",
    ...quick && filter.length === 0 ? oneServer : filter
  ])
}
/** The tests that run on Effect 3 and start programs on Effect 4. */
const programs = ["tools/docs/tutorial.slow.test.ts", "examples/test/programs.slow.test.ts"]
  .filter(isWanted)
if (programs.length > 0) test(root, programs)
