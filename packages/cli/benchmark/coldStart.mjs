/**
 * How long `store-api token` takes with a stored token, as a multiple of loading Effect, in the same run:
 *
 *   node packages/cli/benchmark/coldStart.mjs [rounds]
 *
 * Each round runs every program once, so that what else the machine does meets all of them. Needs a build.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const bin = join(root, "bin", "store-api.js")
const rounds = Number(process.argv[2] ?? 21)

const folder = mkdtempSync(join(tmpdir(), "store-api-cold-start-"))
const emulator = spawn(process.execPath, [bin, "emulator"], {
  env: { PATH: process.env.PATH },
  stdio: ["ignore", "pipe", "inherit"]
})

const settings = async () => {
  let text = ""
  while (!text.includes("STORE_API_CLIENT_SECRET=")) text += (await once(emulator.stdout, "data"))[0].toString()
  emulator.stdout.resume()
  return Object.fromEntries([...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [name, value]))
}

const programs = {
  "node -e 0": ["-e", "0"],
  "node -e 'import(\"effect\")'": ["-e", "import(\"effect\")"],
  "store-api token, stored": [bin, "token"],
  "store-api token --no-store": [bin, "token", "--no-store"],
  "store-api token --help": [bin, "token", "--help"]
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

try {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    STORE_API_TOKEN_FOLDER: join(folder, "tokens"),
    ...await settings()
  }
  const run = (args) => {
    const startedAt = performance.now()
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" })
    if (status !== 0) throw new Error(stderr)
    return performance.now() - startedAt
  }
  run([bin, "token"]) // the token that is stored from now on
  const times = Object.fromEntries(Object.keys(programs).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of Object.entries(programs)) times[name].push(run(args))
  }
  const effect = median(times["node -e 'import(\"effect\")'"])
  for (const [name, values] of Object.entries(times)) {
    const least = Math.min(...values)
    console.log(
      `${name.padEnd(28)} median ${median(values).toFixed(0).padStart(5)} ms   least ${
        least.toFixed(0).padStart(5)
      } ms   ` +
        `${(median(values) / effect).toFixed(2)} × import("effect")`
    )
  }
} finally {
  emulator.kill()
  rmSync(folder, { recursive: true })
}
