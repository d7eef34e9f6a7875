/** The packages as users get them: installed into an empty folder, compiled strictly, imported and run. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { blocksOf } from "../effect4/generate.mjs"
import { pnpmArguments, root } from "../workspace/workspace.mjs"

const execute = promisify(execFile)

/**
 * Runs a command and returns its output.
 *
 * @returns {Promise<string>}
 */
export const run = async (cwd, command, args, env = {}) => {
  const options = {
    cwd,
    env: { ...process.env, ...env },
    maxBuffer: 2 ** 26,
    timeout: 900_000
  }
  const { stdout } = await execute(command, args, {
    ...options,
    shell: process.platform === "win32"
  })
    .catch(({ message, stdout }) => {
      throw new Error(`${message}\n${stdout}`)
    })
  return stdout.trim()
}

const running = []

/** Ends all programs that `start` started. */
export const stop = () => running.forEach((child) => child.kill("SIGKILL"))
process.on("exit", stop)

/** Starts a program and returns its output once it matches. */
export const start = (command, args, pattern, options) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, options)
    running.push(child)
    let text = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        text += chunk
        if (pattern.test(text)) resolve(text)
      })
    }
    child.once("error", reject).once("close", () =>
      reject(new Error(`${command} ended: ${text}`)))
  })

/**
 * Starts the emulator that is installed in a folder, and returns the variables that it prints.
 *
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export const startEmulator = async (folder) => {
  const bin = join(folder, "node_modules/@store-api/emulator/bin/store-api-emulator.js")
  const text = await start(
    process.execPath,
    [bin, "--port", "0"],
    /(export \w+='[^']*'[\s\S]*){4}\n/
  )
  return Object.fromEntries(
    [...text.matchAll(/^export (\w+)='([^']*)'$/gm)].map(([, name, value]) => [name, value])
  )
}

export const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

const readme = readFileSync(join(root, "README.md"), "utf8")

/** The arguments of the README's install command for a major of Effect. */
export const wordsOf = (major) =>
  readme.match(new RegExp(`^npm install (.* effect@\\^${major}.*)$`, "m"))[1].split(" ")

/** The first program of the README. */
export const programOf = (major) =>
  major === 3 ? /^```ts\n([\s\S]*?)^```$/m.exec(readme)[1] : blocksOf(readme)[0].code

export const installers = {
  npm: (args) => ["install", "--no-audit", "--no-fund", ...args],
  pnpm: (args) => pnpmArguments(["add", "--ignore-workspace", ...args])
}

const manifestOf = (folder, name) =>
  JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"))

const strictest = {
  target: "ES2022",
  module: "NodeNext",
  lib: ["ES2022", "DOM", "DOM.Iterable"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false
}

/**
 * Installs packed packages with the versions of the README into a new folder, compiles the README's program and all
 * public modules there, and imports and requires the modules with `node`. Returns the folder. Throws at the first
 * problem.
 *
 * @returns {Promise<string>}
 */
export const consumer = async (folder, { installer, major, node, packages, sources = {} }) => {
  mkdirSync(folder)
  const write = (name, text) => writeFileSync(join(folder, name), text)
  // Our packages depend on each other, and no registry has them yet.
  const overrides = Object.fromEntries(
    packages.map(({ name, tarball }) => [name, `file:${tarball}`])
  )
  write(
    "package.json",
    JSON.stringify({
      private: true,
      type: "module",
      ...installer === "pnpm" && { pnpm: { overrides } }
    })
  )
  const others = [
    ...wordsOf(major).filter((word) => /^@?effect/.test(word)),
    ...["typescript", "@types/node"].map((name) =>
      `${name}@${manifestOf(root, name).version}`
    ),
    // The declarations of Effect 3 import those of ws, but do not install them.
    ...major === 3 ? ["@types/ws@8.18.2"] : []
  ]
  await run(
    folder,
    "npm",
    installers[installer]([
      "--prefer-offline",
      ...packages.map(({ tarball }) => tarball),
      ...others
    ])
  )
  if (installer === "npm") {
    await run(folder, "npm", ["ls", "--all"])
    for (const { name } of packages) {
      if (existsSync(join(folder, "node_modules", name, "node_modules"))) {
        throw new Error(`${name} has a second copy`)
      }
    }
  }

  const modules = packages.flatMap(({ files, name }) =>
    [...files.keys()].flatMap((path) => /^dist\/(.*)\.js$/.exec(path)?.[1] ?? []).filter((
      path
    ) => path !== "index")
      .map((path) => `${name}/${path}`)
  )
  const [open, closed] = [false, true].map((isClosed) =>
    modules.filter((path) => path.includes("/internal/") === isClosed)
  )
  write("app.ts", programOf(major))
  write(
    "modules.ts",
    open.map((path, index) => `export * as m${index} from "${path}"\n`).join("")
  )
  for (const [name, text] of Object.entries(sources)) write(name, text)
  write("tsconfig.json", JSON.stringify({ compilerOptions: strictest, include: ["*.ts"] }))
  // attw has checked the other ways to resolve modules.
  await run(folder, node, [
    join(folder, "node_modules/typescript/bin/tsc"),
    "--pretty",
    "false"
  ])

  write(
    "import.js",
    `for (const path of ${JSON.stringify(modules)}) {
    console.log(path + " " + await import(path).then(() => "open", ({ code }) => code))
  }`
  )
  const found = (await run(folder, node, ["import.js"])).split("\n")
  const expected = modules.map((path) =>
    `${path} ${closed.includes(path) ? "ERR_PACKAGE_PATH_NOT_EXPORTED" : "open"}`
  )
  const wrong = found.filter((line) => !expected.includes(line))
  if (
    open.length === 0 || closed.length === 0 || found.length !== modules.length ||
    wrong.length > 0
  ) {
    throw new Error(`Of ${modules.length} modules, imported: ${wrong.join(", ")}`)
  }
  // CommonJS loads ES modules since Node 20.19.
  write("require.cjs", `for (const path of ${JSON.stringify(open)}) require(path)`)
  await run(folder, node, ["require.cjs"])
  return folder
}

/**
 * Runs the README's program, compiled in a folder, against a service.
 *
 * @returns {Promise<string>}
 */
export const runProgram = async (folder, node, service, args = ["app.js"]) => {
  const output = await run(folder, node, args, service)
  if (!/^200 /.test(output)) {
    throw new Error(`${folder}: the first program of the README prints ${output}`)
  }
  return `the first program of the README prints ${output.split("\n")[0]}`
}
