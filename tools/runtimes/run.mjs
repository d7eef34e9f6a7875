/**
 * `npm run runtimes`: runs core's contract on each runtime of pins.json, and the clients of `@store-api/platform-node`
 * on all but workerd. With names, such as `-- node26 bun`, it runs only on these.
 *
 * Builds the contract as an application with installed packages: Node, Bun and Deno import the built packages from its
 * folder, and workerd gets one module that contains everything. Each process has a deadline.
 */
import "../workspace/require-node.mjs"
import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { build, install, root, takesOnly } from "../workspace/workspace.mjs"
import { binaryOf, pins } from "./binaries.mjs"

takesOnly(...Object.keys(pins))
install()
build()
const { build: bundle } = await import("esbuild")

const folder = mkdtempSync(join(tmpdir(), "runtimes-"))
const children = []
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL")
  rmSync(folder, { recursive: true, force: true })
})
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, () => process.exit(1))

/** Bundles without the paths of tsconfig.json, which lead to the packages' sources. */
const options = {
  bundle: true,
  format: "esm",
  platform: "neutral",
  target: "es2022",
  logLevel: "silent",
  tsconfigRaw: {}
}

const source = (path) => join(root, "tools", "runtimes", "src", path)

const link = (name, target) => {
  const path = join(folder, "node_modules", name)
  mkdirSync(join(path, ".."), { recursive: true })
  symlinkSync(realpathSync(join(root, target)), path)
}

const bundleAll = async () => {
  for (const name of ["effect", "@effect/platform"]) {
    link(name, join("packages/core/node_modules", name))
  }
  link("@effect/platform-node", "packages/platform-node/node_modules/@effect/platform-node")
  for (const name of ["core", "emulator", "platform-node"]) {
    link(`@store-api/${name}`, join("packages", name))
  }
  const contents = `import { runAll } from "./Check.js"
    import { checks } from "./contract.js"
    import * as platformNode from "./platformNode.js"
    await runAll([...checks({ certificates: true }), ...platformNode.checks], process.argv[2])`
  const installed = { ...options, packages: "external" }
  await bundle({
    ...installed,
    stdin: { contents, resolveDir: source("") },
    outfile: join(folder, "main.mjs")
  })
  await bundle({
    ...installed,
    entryPoints: [source("laboratory.ts")],
    outfile: join(folder, "laboratory.mjs")
  })
  // It includes the packages, and fails at an import of a Node module.
  await bundle({
    ...options,
    entryPoints: [source("worker.ts")],
    outfile: join(folder, "worker.mjs"),
    nodePaths: [join(folder, "node_modules")],
    conditions: ["workerd", "worker", "import"],
    mainFields: ["module", "main"]
  })
  copyFileSync(join(root, "tools", "runtimes", "workerd.capnp"), join(folder, "workerd.capnp"))
}

/** Starts a process. `ended` resolves with why it failed, or with `undefined`. */
const start = (command, args, stdio) => {
  const env = { ...process.env, NO_COLOR: "1" }
  const child = spawn(command, args, {
    cwd: folder,
    env,
    killSignal: "SIGKILL",
    stdio,
    timeout: 300_000
  })
  children.push(child)
  const ended = new Promise((resolve) => {
    child.once("error", ({ message }) => resolve(message))
    child.once(
      "close",
      (code, signal) => resolve(code === 0 ? undefined : `it ended with ${signal ?? code}`)
    )
  })
  let errors = ""
  child.stderr?.on("data", (chunk) => (errors += chunk))
  return { child, ended, errors: () => errors.slice(-2000) }
}

/** Runs a program that may connect to this machine only, and download nothing. */
const flags = {
  bun: ["--no-install"],
  deno: [
    "run",
    "--no-remote",
    "--cached-only",
    "--no-prompt",
    "--no-config",
    "--no-lock",
    "--node-modules-dir=manual",
    "--allow-net=127.0.0.1",
    "--allow-env",
    "--allow-read",
    "--allow-sys"
  ]
}

/** Runs a process that prints each outcome as a line of JSON. */
const asProgram = async (name, binary, report) => {
  const stdio = ["ignore", "pipe", "pipe"]
  const { child, ended, errors } = start(binary, [
    ...flags[name] ?? [],
    "main.mjs",
    laboratory
  ], stdio)
  createInterface({ input: child.stdout }).on("line", (line) => report(JSON.parse(line)))
  const problem = await ended
  return problem === undefined ? [] : [`${problem}: ${errors()}`]
}

/** Runs a server whose worker runs one check per request. */
const asWorker = async (binary, report) => {
  const stdio = ["ignore", "ignore", "pipe", "pipe"]
  const { child, ended, errors } = start(
    binary,
    ["serve", "--control-fd=3", "workerd.capnp"],
    stdio
  )
  try {
    const started = createInterface({ input: child.stdio[3] })
    const [line] = await once(started, "line", { signal: AbortSignal.timeout(30_000) })
    const { port } = JSON.parse(line)
    const ask = async (query) => {
      const url = `http://127.0.0.1:${port}/?${new URLSearchParams(query)}`
      const response = await fetch(url, { signal: AbortSignal.timeout(60_000) })
      if (!response.ok) throw new Error(`the response has status ${response.status}`)
      return response.json()
    }
    const { declared } = await ask({})
    // Each check has its own emulator, and most of its time is waiting.
    const left = [...Array(declared).keys()]
    const asker = async () => {
      while (left.length > 0) report(await ask({ laboratory, check: left.shift() }))
    }
    await Promise.all(Array.from({ length: 6 }, asker))
    report({ declared })
    return []
  } catch (error) {
    // workerd logs each failed connection, and the checks cause many.
    return [`${error.message}: ${errors()}`]
  } finally {
    child.kill("SIGKILL")
    await ended
  }
}

/**
 * A program may crash before its end, or run no check. It has passed if it declared the number of its checks, and each
 * of them passed.
 */
const problemsOf = async (name) => {
  const binary = binaryOf(name)
  const outcomes = new Map()
  let declared = 0
  const report = (outcome) => {
    if ("declared" in outcome) declared = outcome.declared
    else outcomes.set(outcome.name, outcome.problem)
  }
  const run = name === "workerd" ? asWorker : asProgram.bind(undefined, name)
  const problems = await run(binary, report)
  return [
    ...problems,
    ...declared === 0 || outcomes.size !== declared
      ? [`${outcomes.size} of ${declared} checks were run`]
      : [],
    ...[...outcomes].filter(([, problem]) => problem !== undefined).map((outcome) =>
      `FAILED: ${outcome.join("\n")}`
    )
  ]
}

await bundleAll()
const { url: laboratory } = await import(join(folder, "laboratory.mjs"))
const named = process.argv.slice(2)
for (
  const name of Object.keys(pins).filter((name) => named.length === 0 || named.includes(name))
) {
  const began = performance.now()
  const problems = await problemsOf(name)
  const seconds = Math.round((performance.now() - began) / 1000)
  process.stdout.write(
    `${name} ${pins[name].version}, ${seconds} s: ${
      ["", ...problems].join("\n  ") || "passed"
    }\n`
  )
  if (problems.length > 0) process.exitCode = 1
}
process.exit()
