/**
 * The packages as a user has them: packed, installed by plain npm outside the workspace, with the line that the README
 * gives, compiled and run as the README shows.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ofMarkdown } from "../repository/support/codeBlocks.js"
import { cleanEnvironment, root, run, succeed } from "../repository/support/command.js"

const libraries = ["core", "platform-node", "emulator", "redis"] as const
/** What is run and not imported. */
const application = "cli"
const names = [...libraries, application] as const

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const consumer = mkdtempSync(join(tmpdir(), "consumer-"))
const installed = (name: string) => join(consumer, "node_modules", "@store-api", name)
const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** The words of the README's install line. */
const installLine = () => {
  const readme = readFileSync(join(root, "README.md"), "utf8")
  return (/^npm install (.*)$/m.exec(readme)?.[1] ?? "").split(" ")
}

/** The version of a tool that the workspace uses too. */
const pinned = (name: string) => {
  const { version } = manifest(join(root, "node_modules", name)) as { readonly version: string }
  return `${name}@${version}`
}

const pack = async (): Promise<Readonly<Record<string, string>>> => {
  const tarballs: Record<string, string> = {}
  for (const name of names) {
    const { stdout } = await succeed(process.execPath, [
      join(root, "tools", "workspace", "run.mjs"), "pnpm",
      ...["--dir", join(root, "packages", name), "pack", "--json", "--pack-destination", consumer]
    ])
    const { filename } = JSON.parse(stdout.slice(stdout.indexOf("{"))) as { readonly filename: string }
    tarballs[`@store-api/${name}`] = filename
  }
  return tarballs
}

const processes: Array<ChildProcess> = []

beforeAll(async () => {
  const tarballs = await pack()
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }))
  await succeed(
    "npm",
    [
      ...["install", "--no-audit", "--no-fund", "--prefer-offline"],
      ...installLine().map((word) => tarballs[word] ?? word),
      ...["emulator", "redis", "cli"].map((name) => tarballs[`@store-api/${name}`] ?? name),
      ...[pinned("typescript"), pinned("@types/node")]
    ],
    { cwd: consumer }
  )
}, 300_000)

afterAll(() => {
  // Each leads its own group, so that what npx started ends with it.
  for (const { exitCode, pid } of processes) if (pid !== undefined && exitCode === null) process.kill(-pid)
  rmSync(consumer, { recursive: true })
}, 120_000)

/**
 * What the compiler finds, also in the declarations of our packages. Not in those of others, which nobody here can mend:
 * `@effect/platform-node` misses the types of `ws`.
 */
const compile = async (project: string, code: string, options: object): Promise<ReadonlyArray<string>> => {
  const folder = join(consumer, project)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "example.ts"), code)
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        ...{ target: "ES2022", lib: ["ES2022", "DOM", "DOM.Iterable"], types: ["node"], outDir: "out" },
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
        ...options
      },
      include: ["*.ts"]
    })
  )
  const tsc = join(consumer, "node_modules", "typescript", "bin", "tsc")
  const { stdout } = await run(process.execPath, [tsc, "--pretty", "false", "-p", folder], { cwd: consumer })
  return stdout.split("\n").filter((line) => /error TS/.test(line) && !/^node_modules\/(?!@store-api\/)/.test(line))
}

const readmeExample = () => {
  const [example] = ofMarkdown().filter(({ file, language }) => file === "README.md" && language === "ts")
  return example?.code ?? ""
}

const resolutions = {
  node16: { module: "Node16", moduleResolution: "Node16" },
  nodenext: { module: "NodeNext", moduleResolution: "NodeNext" },
  bundler: { module: "ESNext", moduleResolution: "Bundler" }
}

const everyResolution = Object.keys(resolutions) as ReadonlyArray<keyof typeof resolutions>

/** Of the installed packages: each module that is public, and each that is nobody else's. */
const specifiers = () => {
  const all = names.flatMap((name) =>
    readdirSync(join(installed(name), "dist"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".js") && path !== "index.js")
      .map((path) => `@store-api/${name}/${path.slice(0, -3).replaceAll("\\", "/")}`)
      .sort()
  )
  const isClosed = (path: string) => /\/(internal\/|bin$)/.test(path) || path.startsWith(`@store-api/${application}/`)
  return { open: all.filter((path) => !isClosed(path)), closed: all.filter(isClosed) }
}

/** The emulator as a process of its own, started by a command; answers the variables that it prints. */
const startEmulator = (...command: ReadonlyArray<string>) =>
  new Promise<Record<string, string>>((resolve, reject) => {
    const child = spawn("npx", ["--no-install", ...command], {
      cwd: consumer,
      env: cleanEnvironment(),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"]
    })
    processes.push(child)
    let text = ""
    const read = (chunk: Buffer) => {
      text += chunk.toString()
      const variables = [...text.matchAll(/^export (\w+)='([^']*)'$/gm)].map(([, name, value]) => [name, value])
      if (variables.length === 4) resolve(Object.fromEntries(variables) as Record<string, string>)
    }
    child.stdout.on("data", read)
    child.stderr.on("data", (chunk: Buffer) => text += chunk.toString())
    child.on("close", (status) => reject(new Error(`The emulator ended with ${String(status)}: ${text}`)))
  })

describe("a user outside the workspace", { timeout: 240_000 }, () => {
  it("installs what the README pins, and one copy of each", async () => {
    assert.includeMembers(installLine(), ["@store-api/core", "@store-api/platform-node"])
    for (const name of names) {
      const { dependencies = {}, peerDependencies = {} } = manifest(installed(name))
      for (const range of Object.values({ ...dependencies, ...peerDependencies })) assert.match(range, /^\^\d/)
      // An application brings Effect along; what npm makes of it is one copy all the same.
      const of = name === application ? dependencies : peerDependencies
      assert.include(installLine(), `effect@${of["effect"] ?? "?"}`)
      assert.isFalse(existsSync(join(installed(name), "node_modules")), "a second copy of something")
    }
    const { dependencies, peerDependencies } = manifest(installed("core"))
    assert.isUndefined(dependencies)
    assert.deepStrictEqual(Object.keys(peerDependencies ?? {}).sort(), ["@effect/platform", "effect"])
    await succeed("npm", ["ls", "--all"], { cwd: consumer })
  })

  it.each(names)("gets the sources and maps of %s, all of its modules, and no tests", (name) => {
    const modules = (folder: string, ending: string) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(ending))
        .map((path) => path.slice(0, -ending.length))
        .sort()
    const sources = modules(join(root, "packages", name, "src"), ".ts")
    assert.isAbove(sources.length, 2)
    assert.deepStrictEqual(modules(join(installed(name), "src"), ".ts"), sources)
    for (const ending of [".js", ".js.map", ".d.ts", ".d.ts.map"]) {
      assert.deepStrictEqual(modules(join(installed(name), "dist"), ending), sources)
    }
    for (const path of modules(join(installed(name), "dist"), ".d.ts.map")) {
      const map = join(installed(name), "dist", `${path}.d.ts.map`)
      const { sources } = JSON.parse(readFileSync(map, "utf8")) as { readonly sources: ReadonlyArray<string> }
      for (const source of sources) assert.isTrue(existsSync(join(map, "..", source)), `${map}: ${source}`)
    }
    const files = readdirSync(installed(name), { recursive: true, encoding: "utf8" })
    assert.deepStrictEqual(
      files.filter((path) => /(^|[\\/])(test|node_modules)([\\/]|$)|\.test\.|tsbuildinfo/.test(path)),
      []
    )
  })

  it("imports every module by its path, and nothing internal", async () => {
    const { closed, open } = specifiers()
    assert.includeMembers(open, ["@store-api/core/TokenPolicy", "@store-api/platform-node/NodeHttp"])
    assert.includeMembers(closed, [
      "@store-api/core/internal/tokenState",
      "@store-api/emulator/bin",
      "@store-api/cli/flags"
    ])
    writeFileSync(
      join(consumer, "paths.js"),
      `const open = ${JSON.stringify(open)}
       const closed = ${JSON.stringify(closed)}
       const found = {}
       for (const path of open) {
         const [scope, name, module] = path.split("/")
         const index = await import(scope + "/" + name)
         found[path] = index[module] === await import(path) ? "the module that the package exports" : "another module"
       }
       for (const path of closed) found[path] = await import(path).then(() => "imported", ({ code }) => code)
       console.log(JSON.stringify(found))`
    )
    const { stdout } = await succeed(process.execPath, ["paths.js"], { cwd: consumer })
    assert.deepStrictEqual(
      JSON.parse(stdout),
      Object.fromEntries([
        ...open.map((path) => [path, "the module that the package exports"]),
        ...closed.map((path) => [path, "ERR_PACKAGE_PATH_NOT_EXPORTED"])
      ])
    )
  })

  it.each(everyResolution)(
    "finds the types of every module by its path under %s, and of nothing internal",
    async (resolution) => {
      const { closed, open } = specifiers()
      const lines = [...open, ...closed].map((path, index) => `export * as m${index} from ${JSON.stringify(path)}`)
      const errors = await compile(`${resolution}-paths`, lines.join("\n"), {
        ...resolutions[resolution],
        skipLibCheck: true
      })
      assert.deepStrictEqual(
        errors.map((error) => /example\.ts\((\d+),\d+\): error (TS\d+): [^']*'([^']*)'/.exec(error)?.slice(1)),
        closed.map((path, index) => [String(open.length + index + 1), "TS2307", path])
      )
    }
  )

  it.each(everyResolution)(
    "compiles the README's example under %s, and the compiler would find a mistake",
    async (resolution) => {
      const options = resolutions[resolution]
      assert.deepStrictEqual(await compile(resolution, readmeExample(), options), [])
      assert.isTrue(existsSync(join(consumer, resolution, "out", "example.js")))
      const mistaken = readmeExample().replace("\"TokenExpiredError\"", "\"NoSuchError\"")
      const [found = ""] = await compile(`${resolution}-mistaken`, mistaken, { ...options, skipLibCheck: true })
      assert.match(found, /-mistaken\/example\.ts\(\d+,\d+\): error/)
    }
  )

  it("runs the README's example against the emulator that npx starts", async () => {
    const variables = await startEmulator("store-api-emulator")
    assert.deepStrictEqual(Object.keys(variables).sort(), [
      "STORE_API_AUTH_URL",
      "STORE_API_CLIENT_ID",
      "STORE_API_CLIENT_SECRET",
      "STORE_API_URL"
    ])
    const example = join(consumer, "nodenext", "out", "example.js")
    const { stderr, stdout } = await succeed(process.execPath, [example], { cwd: consumer, env: variables })
    assert.strictEqual(stderr, "")
    assert.match(stdout, /^200 \{/)
    assert.match(stdout, /path: '\/orders'/)
    assert.match(stdout, /clientId: 'demo-client'/)
    assert.notInclude(stdout, variables["STORE_API_CLIENT_SECRET"] ?? "?")
    const failing = await run(process.execPath, [example], { cwd: consumer })
    assert.notStrictEqual(failing.status, 0)
    assert.match(failing.stdout + failing.stderr, /STORE_API_AUTH_URL/)
  })

  it("has the command line, which buys one token for several runs and shows it when asked", async () => {
    const storeApi = async (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
      const finished = await run("npx", ["--no-install", "store-api", ...args], {
        cwd: consumer,
        env: { ...env, STORE_API_TOKEN_FOLDER: join(consumer, "tokens") }
      })
      // What npm has to say of its own settings on this machine is not the command's.
      return { ...finished, stderr: finished.stderr.replace(/^npm (?:warn|notice).*\n/gmi, "") }
    }
    const { version } = manifest(installed("cli")) as { readonly version: string }
    assert.deepStrictEqual(await storeApi(["--version"]), { status: 0, stdout: `${version}\n`, stderr: "" })

    const variables = await startEmulator("store-api", "emulator")
    const first = await storeApi(["token"], variables)
    assert.strictEqual(first.status, 0, first.stderr)
    assert.match(first.stdout, /^[\w+/=.~-]{20,}\n$/)
    assert.deepStrictEqual(await storeApi(["token"], variables), first)
    assert.strictEqual(
      (await storeApi(["token", "--header"], variables)).stdout,
      `Authorization: Bearer ${first.stdout}`
    )

    const call = await storeApi(["call", "GET", "/orders"], variables)
    assert.deepStrictEqual([call.status, call.stderr], [0, ""])
    assert.include(call.stdout, `"path":"/orders"`)
    const missing = await storeApi(["token"])
    assert.strictEqual(missing.status, 3)
    assert.include(missing.stderr, "STORE_API_AUTH_URL")
  })
})
