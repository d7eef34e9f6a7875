/** Both lines as users get them: installed into empty folders, compiled strictly, and run against the emulator. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { pack } from "../release/packages.mjs"
import { pnpmArguments, root } from "../workspace/workspace.mjs"
import { blocksOf } from "./generate.mjs"

const windows = process.platform === "win32"
const readme = readFileSync(join(root, "README.md"), "utf8")
const json = (path) => JSON.parse(readFileSync(join(root, path), "utf8"))

/** The packages of Effect in one of the install lines of the README, and the tools of the test. */
const othersOf = (major) => [
  ...readme.match(new RegExp(`^npm install .* effect@\\^${major}.*$`, "m"))[0].match(/(?<= )(@effect\/|effect@)\S+/g),
  ...["typescript", "@types/node"].map((name) => `${name}@${json(`node_modules/${name}/package.json`).version}`)
]

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

const strictest = {
  ...{ target: "ES2022", module: "NodeNext", lib: ["ES2022", "DOM", "DOM.Iterable"], types: ["node"] },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }
}

const run = (command, args, cwd, env = {}) => {
  const options = { cwd, encoding: "utf8", env: { ...process.env, ...env }, shell: windows, timeout: 300_000 }
  const { error, status, stderr, stdout } = spawnSync(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error ?? status}\n${stdout}${stderr}`)
  return stdout.trim()
}

/** Starts a program and waits until its output matches. */
const start = (command, args, pattern) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args)
    let text = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        text += chunk
        if (pattern.test(text)) resolve({ text, stop: () => child.kill("SIGKILL") })
      })
    }
    child.once("error", reject).once("close", () => reject(new Error(`${command} ended: ${text}`)))
  })

const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address()
  server.close()
  return port
}

/** Installs the tarballs of a line into an empty folder, and compiles the programs there. */
const install = (work, node, { code, installer, line, others, tarballs }) => {
  const folder = join(work, `${line}-${installer}`)
  mkdirSync(folder)
  // Our packages depend on each other, and no registry has them yet.
  const nameOf = (path) => `@store-api/${/store-api-(.*)-\d/.exec(basename(path))[1]}`
  const overrides = Object.fromEntries(tarballs.map((path) => [nameOf(path), `file:${path}`]))
  const manifest = { private: true, type: "module", ...installer === "pnpm" ? { pnpm: { overrides } } : {} }
  const args = installer === "pnpm"
    ? pnpmArguments(["add", "--ignore-workspace", "--prefer-offline"])
    : ["install", "--no-audit", "--no-fund", "--prefer-offline"]
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest))
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: strictest, include: ["*.ts"] }))
  writeFileSync(join(folder, "app.ts"), code)
  writeFileSync(join(folder, "sharing.ts"), sharing)
  run("npm", [...args, ...tarballs, ...others], folder, {
    PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`
  })
  run(node, [join(folder, "node_modules/typescript/bin/tsc")], folder)
  return folder
}

/** Installs, compiles and runs. Throws at the first error. */
export const consume = async (node, tarballs) => {
  const work = mkdtempSync(join(tmpdir(), "effect4-"))
  const running = []
  try {
    const names = tarballs.map((path) => basename(path).replace(/-\d.*/, "-"))
    const older = pack(work).map(({ tarball }) => tarball).filter((path) => names.some((name) => path.includes(name)))
    const effect3 = {
      line: "effect3",
      tarballs: older,
      // The declarations of Effect 3 import those of ws, but do not install them.
      others: [...othersOf(3), "@types/ws@8.18.2"],
      code: /^```ts\n([\s\S]*?)^```$/m.exec(readme)[1]
    }
    const effect4 = { line: "effect4", tarballs, others: othersOf(4), code: blocksOf(readme)[0].code }
    // The tests of the release install Effect 3 with npm.
    const folders = [{ ...effect3, installer: "pnpm" }, { ...effect4, installer: "pnpm" }, {
      ...effect4,
      installer: "npm"
    }]
      .map((options) => install(work, node, options))
    const bin = join(folders[2], "node_modules/@store-api/emulator/bin/store-api-emulator.js")
    const emulator = await start(node, [bin, "--port", "0"], /(export \w+='[^']*'[\s\S]*){4}\n/)
    running.push(emulator)
    const service = Object.fromEntries(
      [...emulator.text.matchAll(/^export (\w+)='([^']*)'$/gm)].map(([, name, value]) => [name, value])
    )
    for (const folder of folders) {
      const output = run(node, ["app.js"], folder, service)
      if (!/^200 /.test(output)) throw new Error(`${folder}: the first program of the README prints ${output}`)
      process.stdout.write(`${basename(folder)}: the first program of the README compiles and runs\n`)
    }
    const port = await freePort()
    // As in the tests of the packages: without the command, this half is skipped, except with `CI=true`.
    const hasRedis = process.env.CI === "true" || spawnSync("redis-server", ["--version"]).status === 0
    if (!hasRedis) process.stdout.write("There is no command redis-server: sharing through Redis is not tested.\n")
    if (hasRedis) running.push(await start("redis-server", ["--port", String(port), "--save", ""], /Ready to accept/))
    // A token that one line stores is the one that the other line gets.
    for (const [index, [first, second]] of [folders, [...folders].reverse()].entries()) {
      for (const STORE_API_REDIS_URL of ["", ...hasRedis ? [`redis://127.0.0.1:${port}/${index}`] : []]) {
        const env = { ...service, STORE_API_REDIS_URL, STORE_API_TOKEN_FOLDER: mkdtempSync(join(work, "tokens-")) }
        const [stored, found] = [first, second].map((folder) => run(node, ["sharing.js"], folder, env))
        if (stored === "" || stored !== found) throw new Error(`${second} does not get the token of ${first}.`)
      }
    }
    process.stdout.write(`both lines share tokens through the file store${hasRedis ? " and Redis" : ""}\n`)
  } finally {
    for (const { stop } of running) stop()
    rmSync(work, { recursive: true, force: true })
  }
}
