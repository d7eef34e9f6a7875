/**
 * `npm run effect4`: generates and compiles the packages of the Effect 4 line, and runs their tests on Effect 4.
 *
 *   node tools/effect4/run.mjs [--quick] [--out FOLDER [--test]] [--newest] [TESTS…]
 *
 * `--out` packs them into FOLDER and ends there. With `--test` it also runs the tests, installs the tarballs and runs
 * programs with them. TESTS are parts of the paths of test files; the default is all. `--quick` leaves out all but one
 * server of the interoperability suite. `--newest` first installs the newest minor of Effect 4 instead of the
 * lockfile's.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { delimiter, dirname, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { build, install, pnpm, root } from "../workspace/workspace.mjs"

const { positionals, values: { newest, out, quick, test: tested } } = parseArgs({
  allowPositionals: true,
  options: {
    newest: { type: "boolean", default: false },
    out: { type: "string" },
    quick: { type: "boolean", default: false },
    test: { type: "boolean", default: false }
  }
})

install()
// A range in its manifest limits the update to this major. The other modules read the manifest when they are loaded.
if (newest) pnpm(["--dir", "tools/effect4/line", "update", "effect", "@effect/platform-node", "@effect/opentelemetry"])
// These need what was just installed.
const { buildLine, nodeOf, packLine } = await import("./build.mjs")
const { line } = await import("./generate.mjs")

await buildLine({ checked: tested || out === undefined })

const packed = out === undefined ? undefined : await packLine(resolve(root, out))
if (packed !== undefined && packed.problems.length > 0) {
  for (const problem of packed.problems) process.stderr.write(`${problem}\n`)
  process.exit(1)
}
if (out !== undefined && !tested) process.exit(0)

const node = await nodeOf()

const filter = positionals.length === 0 ? [] : [...positionals, "--passWithNoTests"]
// One server that no Debian package provides.
const oneServer = ["contract", "-t", "^oidc-provider"]
const test = (folder, tests) => {
  const { status } = spawnSync(node, [join(folder, "node_modules/vitest/vitest.mjs"), "run", ...tests], {
    cwd: folder,
    stdio: "inherit",
    // Tests start `node` by its name.
    env: { ...process.env, STORE_API_EFFECT4: line, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
  })
  if (status !== 0) process.exit(status ?? 1)
}

test(line, filter)
test(line, ["--config", "packages/interop/vitest.config.ts", ...quick && positionals.length === 0 ? oneServer : filter])
const documentation = ["tools/effect4/line.test.ts", "tools/docs/tutorial.slow.test.ts"]
  .filter((path) => positionals.length === 0 || positionals.some((name) => path.includes(name)))
if (documentation.length > 0) test(root, documentation)

if (packed !== undefined) {
  const { consume } = await import("./consumer.mjs")
  build()
  await consume(node, packed.packages.map(({ tarball }) => tarball))
}
process.exit(0)
