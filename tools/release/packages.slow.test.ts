/**
 * The packages as users get them: packed, checked, installed by npm outside the workspace with the line of the README,
 * compiled and run as the README shows. Needs `npm run build`.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import ts from "typescript"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ofMarkdown } from "../repository/support/codeBlocks.js"
import { cleanEnvironment, root, run, succeed } from "../repository/support/command.js"
import { allProblemsOf, pack } from "./packages.mjs"

/** The package that is run and cannot be imported. */
const application = "cli"
const names = ["core", "platform-node", "emulator", "redis", application] as const

interface Manifest {
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const consumer = mkdtempSync(join(tmpdir(), "consumer-"))
const installed = (name: string) => join(consumer, "node_modules", "@store-api", name)
const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** The arguments of the README's install command for Effect 3. */
const installLine = () => {
  const readme = readFileSync(join(root, "README.md"), "utf8")
  return (/^npm install (@store-api\/core@effect3 .*)$/m.exec(readme)?.[1] ?? "").replaceAll("@effect3", "").split(" ")
}

const packages = pack(consumer)
const core = packages.find(({ name }) => name === "@store-api/core")?.files ?? new Map<string, string>()

const processes: Array<ChildProcess> = []

beforeAll(async () => {
  const tarballs = new Map(packages.map(({ name, tarball }) => [name, tarball]))
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }))
  await succeed(
    "npm",
    [
      ...["install", "--no-audit", "--no-fund", "--prefer-offline"],
      ...installLine().map((word) => tarballs.get(word) ?? word),
      ...["emulator", "redis", "cli"].map((name) => tarballs.get(`@store-api/${name}`) ?? name),
      `@types/node@${manifest(join(root, "node_modules", "@types", "node")).version}`
    ],
    { cwd: consumer }
  )
}, 300_000)

afterAll(() => {
  for (const child of processes) child.kill()
  rmSync(consumer, { recursive: true })
}, 120_000)

const readmeExample = () => {
  const [example] = ofMarkdown().filter(({ file, language }) => file === "README.md" && language === "ts")
  return example?.code ?? ""
}

const resolutions = {
  node16: { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 },
  nodenext: { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }
}

/**
 * Compiles modules of the consumer. Returns the errors in these and in the declarations of our packages: the
 * declarations of other packages have errors too, as in `@effect/platform-node` without the types of `ws`.
 */
const compile = (modules: Readonly<Record<string, string>>, resolution: keyof typeof resolutions) => {
  const paths = Object.entries(modules).map(([name, code]) => {
    const path = join(consumer, `${name}.ts`)
    writeFileSync(path, code)
    return path
  })
  const options: ts.CompilerOptions = {
    ...resolutions[resolution],
    ...{ target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"] },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, types: ["node"] }
  }
  const host = ts.createCompilerHost(options)
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone
  host.getCurrentDirectory = () => consumer
  const program = ts.createProgram(paths, options, host)
  const ours = program.getSourceFiles().filter(({ fileName }) =>
    paths.includes(fileName) || fileName.includes("/node_modules/@store-api/")
  )
  assert.isAbove(ours.length, 30)
  return ours.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
    .map(({ code, file, messageText, start = 0 }) => {
      const line = (file?.getLineAndCharacterOfPosition(start).line ?? 0) + 1
      const message = ts.flattenDiagnosticMessageText(messageText, " ")
      return { in: file?.fileName.slice(consumer.length + 1), line, code, message }
    })
}

/** The public modules of the installed packages, and those that cannot be imported. */
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

const command = (name: string) => join(consumer, "node_modules", ".bin", name)

/** Starts the emulator with a command. Returns the variables that it prints. */
const startEmulator = (name: string, ...args: ReadonlyArray<string>) =>
  new Promise<Record<string, string>>((resolve, reject) => {
    const child = spawn(command(name), args, {
      cwd: consumer,
      env: cleanEnvironment(),
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
    child.on("close", (status) => reject(new Error(`The emulator exited with ${String(status)}: ${text}`)))
  })

const flaws: ReadonlyArray<[what: string, path: string, from: string | RegExp, to: string, ...found: Array<RegExp>]> = [
  ["CommonJS", "package.json", /"type": "module",/, "", /^publint: /, /^attw: /],
  ["types after the code", "package.json", /("types": "[^*"]*"),(\s*)("default": "[^"]*")/, "$3,$2$1", /^publint: /],
  ["an import without its ending", "dist/TokenSource.d.ts", "./AccessToken.js", "./AccessToken", /^attw: Internal/]
]

describe("the packed packages", { timeout: 120_000 }, () => {
  it("have no problems, come after their dependencies, and have one version", async () => {
    const order = packages.map(({ name }) => name.replace("@store-api/", ""))
    assert.sameMembers(order, [...names])
    for (const [below, above] of [["core", "platform-node"], ["platform-node", "cli"], ["core", "redis"]] as const) {
      assert.isBelow(order.indexOf(below), order.indexOf(above))
    }
    assert.strictEqual(new Set(packages.map(({ version }) => version)).size, 1)
    for (const { files, name } of packages) assert.deepStrictEqual(await allProblemsOf(files), [], name)
  })

  it.each(flaws)("are checked by publint and attw: %s", async (_, path, from, to, ...found) => {
    const text = core.get(path) ?? ""
    const changed = text.replace(from, to)
    assert.notStrictEqual(changed, text)
    const problems = await allProblemsOf(new Map([...core, [path, changed]]))
    for (const pattern of found) assert.isTrue(problems.some((problem) => pattern.test(problem)), problems.join("\n"))
    for (const problem of problems) assert.isTrue(found.some((pattern) => pattern.test(problem)), problem)
  })
})

describe("a user outside the workspace", { timeout: 240_000 }, () => {
  it("installs what the README pins, and one copy of each", async () => {
    assert.includeMembers(installLine(), ["@store-api/core", "@store-api/platform-node"])
    for (const name of names) {
      const { dependencies = {}, peerDependencies = {} } = manifest(installed(name))
      for (const range of Object.values({ ...dependencies, ...peerDependencies })) assert.match(range, /^\^\d/)
      // An application depends on Effect itself, and npm must still install a single copy.
      const of = name === application ? dependencies : peerDependencies
      assert.include(installLine(), `effect@${of["effect"] ?? "?"}`)
      assert.isFalse(existsSync(join(installed(name), "node_modules")), "a second copy of something")
    }
    const { dependencies, peerDependencies } = manifest(installed("core"))
    assert.isUndefined(dependencies)
    assert.deepStrictEqual(Object.keys(peerDependencies ?? {}).sort(), ["@effect/platform", "effect"])
    await succeed("npm", ["ls", "--all"], { cwd: consumer })
  })

  it("imports every module by its path, and nothing internal", async () => {
    const { closed, open } = specifiers()
    assert.includeMembers(open, ["@store-api/core/TokenResponse", "@store-api/platform-node/NodeHttp"])
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

  it.each(Object.keys(resolutions) as ReadonlyArray<keyof typeof resolutions>)(
    "compiles the README's example and every public module under %s, finds a mistake, and no internal module",
    async (resolution) => {
      // The compiler blocks this thread for seconds. Vitest needs it between the tests.
      await setImmediate()
      const { closed, open } = specifiers()
      const lines = [...open, ...closed].map((path, index) => `export * as m${index} from ${JSON.stringify(path)}`)
      const mistaken = readmeExample().replace("\"TokenRefusedError\"", "\"NoSuchError\"")
      const errors = compile({ example: readmeExample(), mistaken, paths: lines.join("\n") }, resolution)
      assert.deepStrictEqual([...new Set(errors.map((error) => error.in))].sort(), ["mistaken.ts", "paths.ts"])
      assert.deepStrictEqual(
        errors.filter((error) => error.in === "paths.ts").map(({ code, line, message }) => [
          line,
          code,
          /'([^']*)'/.exec(message)?.[1]
        ]),
        closed.map((path, index) => [open.length + index + 1, 2307, path])
      )
    }
  )

  it("runs the README's example against the emulator", async () => {
    const variables = await startEmulator("store-api-emulator")
    assert.deepStrictEqual(Object.keys(variables).sort(), [
      "STORE_API_AUTH_URL",
      "STORE_API_CLIENT_ID",
      "STORE_API_CLIENT_SECRET",
      "STORE_API_URL"
    ])
    const example = join(consumer, "example.js")
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
    const { outputText } = ts.transpileModule(readmeExample(), { compilerOptions })
    writeFileSync(example, outputText)
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

  it("has the command line, which acquires one token for several runs and prints it when asked", async () => {
    const storeApi = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
      run(command("store-api"), args, {
        cwd: consumer,
        env: { ...env, STORE_API_TOKEN_FOLDER: join(consumer, "tokens") }
      })
    const { version } = manifest(installed("cli"))
    assert.deepStrictEqual(await storeApi(["--version"]), { status: 0, stdout: `${version}\n`, stderr: "" })

    const variables = await startEmulator("store-api", "emulator")
    const first = await storeApi(["token"], variables)
    assert.strictEqual(first.status, 0, first.stderr)
    assert.match(first.stdout, /^[\w+/=.~-]{20,}\n$/)
    assert.deepStrictEqual(await storeApi(["token"], variables), first)

    const call = await storeApi(["call", "/orders"], variables)
    assert.deepStrictEqual([call.status, call.stderr], [0, ""])
    assert.include(call.stdout, `"path":"/orders"`)
    const missing = await storeApi(["token"])
    assert.strictEqual(missing.status, 3)
    assert.include(missing.stderr, "STORE_API_AUTH_URL")
  })
})
