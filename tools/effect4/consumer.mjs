/** The tarballs as users get them: installed into an empty folder, compiled strictly, and run against the emulator. */
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { pnpmArguments, root } from "../workspace/workspace.mjs"
import { page } from "./generate.mjs"

const windows = process.platform === "win32"

const { devDependencies: versions } = JSON.parse(
  readFileSync(new URL("./line/package.json", import.meta.url), "utf8")
)
const { version: typescript } = JSON.parse(readFileSync(join(root, "node_modules/typescript/package.json"), "utf8"))

/** The packages that an application installs with ours. */
const others = [
  ...["effect", "@effect/platform-node"].map((name) => `${name}@^${versions[name]}`),
  `typescript@${typescript}`,
  `@types/node@${versions["@types/node"]}`
]

/** Asks for a token that processes share, and prints it. The same text runs on both majors of Effect. */
const asking = `
import { AccessTokenProvider } from "@store-api/core"
import { FileTokenStore, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Redacted } from "effect"

const store = process.env.STORE_API_REDIS_URL ? RedisTokenStore.layerConfig() : FileTokenStore.layerConfig()
const ask = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const { value } = yield* provider.get
  console.log(Redacted.value(value))
})
Effect.runPromise(Effect.provide(ask, Layer.provide(NodeStoreAuth.layerSharedConfig(), store)))
`

const strictest = {
  ...{ target: "ES2022", module: "NodeNext", lib: ["ES2022", "DOM", "DOM.Iterable"], types: ["node"] },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }
}

const run = (command, args, cwd, env = {}) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, ...env },
    shell: windows,
    timeout: 300_000
  })
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error ?? status}\n${stdout}${stderr}`)
  return stdout.trim()
}

/** Starts a program, and waits for a text of its output. */
const started = (command, args, env, pattern) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] })
    let text = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        text += chunk
        if (pattern.test(text)) resolve({ text, end: () => child.kill("SIGKILL") })
      })
    }
    child.once("error", reject)
    child.once("close", () => reject(new Error(`${command} ended: ${text}`)))
  })

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

/** A folder in which `asking` finds the packages of Effect 3, as they are built in the workspace. */
const effect3 = (folder) => {
  mkdirSync(join(folder, "node_modules", "@store-api"), { recursive: true })
  symlinkSync(join(root, "packages/redis/node_modules/effect"), join(folder, "node_modules/effect"))
  for (const name of ["core", "platform-node", "redis"]) {
    symlinkSync(join(root, "packages", name), join(folder, "node_modules/@store-api", name))
  }
  return folder
}

/** A token that one line stored is what the other gets, in both directions. */
const exchange = (node, folders, variables, store) => {
  for (const [first, second] of [folders, [...folders].reverse()]) {
    const env = { ...variables, ...store() }
    const [stored, found] = [first, second].map((folder) => run(node, [join(folder, "ask.mjs")], folder, env))
    if (stored === "" || stored !== found) throw new Error("A token that one line stored is not what the other gets.")
  }
}

/** Installs, compiles and runs. Fails at the first thing that is wrong. */
export const consume = async (node, tarballs) => {
  const work = mkdtempSync(join(tmpdir(), "effect4-"))
  const onPath = { PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
  const running = []
  try {
    const old = effect3(join(work, "effect3"))
    const installers = {
      npm: ["install", "--no-audit", "--no-fund", "--prefer-offline"],
      pnpm: pnpmArguments(["add", "--ignore-workspace"])
    }
    for (const [name, args] of Object.entries(installers)) {
      const folder = join(work, name)
      mkdirSync(folder)
      // Our packages depend on each other, and no registry has them yet.
      const overrides = Object.fromEntries(
        tarballs.map((path) => [`@store-api/${/store-api-(.*)-\d/.exec(path)[1]}`, `file:${path}`])
      )
      writeFileSync(
        join(folder, "package.json"),
        JSON.stringify({ private: true, type: "module", ...name === "pnpm" ? { pnpm: { overrides } } : {} })
      )
      run("npm", [...args, ...tarballs, ...others], folder, onPath)
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: strictest, files: ["app.ts"] }))
      writeFileSync(join(folder, "app.ts"), page(readFileSync(join(root, "README.md"), "utf8")).code[0])
      run(node, [join(folder, "node_modules/typescript/bin/tsc")], folder)
      const bin = join(folder, "node_modules/@store-api/emulator/bin/store-api-emulator.js")
      const emulator = await started(node, [bin, "--port", "0"], {}, /(export \w+='[^']*'[\s\S]*){4}\n/)
      running.push(emulator)
      const variables = Object.fromEntries(
        [...emulator.text.matchAll(/^export (\w+)='([^']*)'$/gm)].map(([, name, value]) => [name, value])
      )
      const output = run(node, [join(folder, "app.js")], folder, variables)
      if (!/^200 /.test(output)) throw new Error(`The first program of the README prints ${output}`)
      process.stdout.write(`installed by ${name}: the first program of the README compiles and runs\n`)
      if (name === "pnpm") continue
      for (const line of [old, folder]) writeFileSync(join(line, "ask.mjs"), asking)
      exchange(node, [old, folder], variables, () => ({
        STORE_API_TOKEN_FOLDER: mkdtempSync(join(work, "tokens-")),
        STORE_API_REDIS_URL: ""
      }))
      const port = await freePort()
      running.push(await started("redis-server", ["--port", String(port), "--save", ""], {}, /Ready to accept/))
      let database = 0
      exchange(node, [old, folder], variables, () => ({
        STORE_API_REDIS_URL: `redis://127.0.0.1:${port}/${database++}`
      }))
      process.stdout.write("tokens are exchanged between Effect 3 and Effect 4, by the file store and by Redis\n")
    }
  } finally {
    for (const { end } of running) end()
    rmSync(work, { recursive: true, force: true })
  }
}
