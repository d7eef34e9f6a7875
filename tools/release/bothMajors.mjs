/** Installs the packages of both majors as users do, runs programs with them, and exchanges tokens between them. */
import { spawnSync } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { basename, join } from "node:path"
import { nodeOf } from "../effect4/generate.mjs"
import { consumer, freePort, run, runProgram, start, startEmulator } from "./consumer.mjs"
import { pack } from "./packages.mjs"

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

const node = nodeOf()

/** Installs both majors into empty folders. The tests of the packages install Effect 3 with npm. */
const installBoth = async (work, effect4) => {
  const names = effect4.map(({ name }) => name)
  const packages = {
    3: pack(join(work, "effect3")).filter(({ name }) => names.includes(name)),
    4: effect4
  }
  const folders = []
  for (const [major, installer] of [[3, "pnpm"], [4, "pnpm"], [4, "npm"]]) {
    const options = {
      installer,
      major,
      node,
      packages: packages[major],
      sources: { "sharing.ts": sharing }
    }
    folders.push(await consumer(join(work, `effect${major}-${installer}`), options))
  }
  return folders
}

// As in the tests of the packages: without the command, this half is skipped, except with `CI=true`.
const hasRedis = () =>
  process.env.CI === "true" || spawnSync("redis-server", ["--version"]).status === 0

const startRedis = async () => {
  const port = await freePort()
  await start("redis-server", ["--port", `${port}`, "--save", ""], /Ready to accept/)
  return [0, 1].map((database) => `redis://127.0.0.1:${port}/${database}`)
}

/** Expects that the second folder gets the token that the first one stored. */
const exchange = async (first, second, env) => {
  const stored = await run(first, node, ["sharing.js"], env)
  const found = await run(second, node, ["sharing.js"], env)
  if (stored === "" || stored !== found) {
    throw new Error(`${second} does not get the token of ${first}.`)
  }
}

/** Throws at the first problem. */
export const tryBoth = async (work, effect4) => {
  const folders = await installBoth(work, effect4)
  const service = await startEmulator(folders[2])
  for (const folder of folders) {
    process.stdout.write(`${basename(folder)}: ${await runProgram(folder, node, service)}\n`)
  }
  const databases = hasRedis() ? await startRedis() : []
  if (databases.length === 0) {
    process.stdout.write(
      "There is no command redis-server: sharing through Redis is not tested.\n"
    )
  }
  for (const [index, [first, second]] of [folders, [...folders].reverse()].entries()) {
    for (const STORE_API_REDIS_URL of ["", ...databases.slice(index, index + 1)]) {
      await exchange(first, second, {
        ...service,
        STORE_API_REDIS_URL,
        STORE_API_TOKEN_FOLDER: mkdtempSync(join(work, "tokens-"))
      })
    }
  }
  process.stdout.write("both majors share tokens\n")
}
