/**
 * `npm run effect4`: generates and compiles the packages of the Effect 4 line, and runs their tests on Effect 4.
 *
 * `--out` packs them into FOLDER and ends there. With `--test` it also runs the tests, installs the tarballs of both
 * lines and runs programs with them. TESTS are parts of the paths of test files; the default is all. `--quick` leaves
 * out all but one server of the interoperability suite. `--newest` first installs the newest minor of Effect 4 instead
 * of the lockfile's.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, delimiter, dirname, join, resolve } from "node:path"
import { install, parsed, pnpm, root } from "../workspace/workspace.mjs"

const usage = "npm run effect4 -- [--quick] [--out FOLDER [--test]] [--newest] [TESTS…]"
const { positionals, values: { newest, out, quick, test: tested } } = parsed(usage, {
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
if (newest) {
  pnpm([
    "--dir",
    "tools/effect4/line",
    "update",
    "effect",
    "@effect/platform-node",
    "@effect/opentelemetry"
  ])
}
// These need what was just installed.
const { buildLine, line, nodeOf, packLine } = await import("./generate.mjs")

buildLine({ checked: tested || out === undefined })

const packed = out === undefined ? undefined : await packLine(resolve(root, out))
for (const problem of packed?.problems ?? []) process.stderr.write(`${problem}\n`)
if (packed?.problems.length > 0) process.exit(1)
if (packed !== undefined && !tested) {
  process.stdout.write(packed.install)
  process.exit(0)
}

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
    env: { ...process.env, STORE_API_EFFECT4: line }
  })
  if (status !== 0) process.exit(status ?? 1)
}

test(line, filter)
if (isWanted("packages/interop/test/contract.test.ts")) {
  test(line, [
    "--config",
    "packages/interop/vitest.config.ts",
    ...quick && filter.length === 0 ? oneServer : filter
  ])
}
/** The tests of this line that run on Effect 3 and start programs on Effect 4. */
const programs = ["tools/docs/tutorial.slow.test.ts", "examples/test/programs.slow.test.ts"]
  .filter(isWanted)
if (programs.length > 0) test(root, programs)
if (packed === undefined) process.exit(0)

const { consumer, freePort, run, runProgram, start, startEmulator } = await import(
  "../release/consumer.mjs"
)
const { pack } = await import("../release/packages.mjs")

/** Acquires a token through a store and prints it. The same text runs on both majors. */
const sharing = `
import { AccessTokenProvider } from "@store-api/core"
import { FileTokenStore, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Redacted } from "effect"

const store = process.env["STORE_API_REDIS_URL"] ? RedisTokenStore.layerConfig() : FileTokenStore.layerConfig()
const program = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  console.log(Redacted.value((yield* provider.get).value))
})
void Effect.runPromise(Effect.provide(program, Layer.provide(NodeStoreAuth.layerSharedConfig(), store)))
`

const work = mkdtempSync(join(tmpdir(), "effect4-"))
process.on("exit", () => rmSync(work, { recursive: true, force: true }))

const names = packed.packages.map(({ name }) => name)
const lines = { 3: pack(work).filter(({ name }) => names.includes(name)), 4: packed.packages }
// The tests of the release install Effect 3 with npm.
const folders = []
for (const [major, installer] of [[3, "pnpm"], [4, "pnpm"], [4, "npm"]]) {
  const options = {
    installer,
    major,
    node,
    packages: lines[major],
    sources: { "sharing.ts": sharing }
  }
  folders.push(await consumer(join(work, `effect${major}-${installer}`), options))
}
const service = await startEmulator(folders[2])
for (const folder of folders) {
  process.stdout.write(`${basename(folder)}: ${await runProgram(folder, node, service)}\n`)
}

const port = await freePort()
// As in the tests of the packages: without the command, this half is skipped, except with `CI=true`.
const hasRedis = process.env.CI === "true" ||
  spawnSync("redis-server", ["--version"]).status === 0
if (!hasRedis) {
  process.stdout.write(
    "There is no command redis-server: sharing through Redis is not tested.\n"
  )
}
if (hasRedis) {
  await start("redis-server", ["--port", String(port), "--save", ""], /Ready to accept/)
}
// A token that one line stores is the one that the other line gets.
for (const [index, [first, second]] of [folders, [...folders].reverse()].entries()) {
  for (
    const STORE_API_REDIS_URL of [
      "",
      ...hasRedis ? [`redis://127.0.0.1:${port}/${index}`] : []
    ]
  ) {
    const env = {
      ...service,
      STORE_API_REDIS_URL,
      STORE_API_TOKEN_FOLDER: mkdtempSync(join(work, "tokens-"))
    }
    const stored = await run(first, node, ["sharing.js"], env)
    const found = await run(second, node, ["sharing.js"], env)
    if (stored === "" || stored !== found) {
      throw new Error(`${second} does not get the token of ${first}.`)
    }
  }
}
process.stdout.write(
  `both lines share tokens through the file store${hasRedis ? " and Redis" : ""}\n`
)
process.exit(0)
