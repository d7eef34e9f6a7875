/**
 * The packages as users get them: packed, installed by npm outside the workspace with the line of the README,
 * compiled and run as the README shows. Needs `npm run build`. `npm run effect4 -- --out` does the same for Effect 4,
 * and with pnpm.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import ts from "typescript"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { cleanEnvironment, run, succeed } from "../support/command.js"
import { fenced, read } from "../support/pages.js"
import { allProblemsOf, pack } from "./packages.mjs"

type Env = Readonly<Record<string, string>>

const consumer = mkdtempSync(join(tmpdir(), "consumer-"))
const packages = pack(consumer)
const core = packages.find(({ name }) => name === "@store-api/core")?.files ?? new Map<string, string>()

const readmeExample = fenced("README.md", read("README.md")).find(({ language }) => language === "ts")?.code ?? ""

/** The arguments of the README's install command for Effect 3. */
const installLine = (/^npm install (@store-api\/core@effect3 .*)$/m.exec(read("README.md"))?.[1] ?? "")
  .replaceAll("@effect3", "").split(" ")

/** The public modules of the packages, and those that cannot be imported. */
const modules = packages.flatMap(({ files, name }) =>
  [...files.keys()].flatMap((path) => /^dist\/(.*)\.js$/.exec(path)?.[1] ?? []).filter((path) => path !== "index")
    .map((path) => `${name}/${path}`)
)
const isClosed = (path: string) => /\/(internal\/|bin$)|^@store-api\/cli\//.test(path)
const open = modules.filter((path) => !isClosed(path))
const closed = modules.filter(isClosed)

const versionOf = (name: string) => {
  const manifest = JSON.parse(read(`node_modules/${name}/package.json`)) as { readonly version: string }
  return `${name}@${manifest.version}`
}

beforeAll(async () => {
  const tarballs = new Map(packages.map(({ name, tarball }) => [name, tarball]))
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }))
  const others = ["emulator", "redis", "cli"].map((name) => `@store-api/${name}`)
  const installed = [...installLine, ...others].map((word) => tarballs.get(word) ?? word)
  // The declarations of Effect 3 import those of ws, but do not install them.
  const types = ["typescript", "@types/node"].map(versionOf).concat("@types/ws@8.18.2")
  await succeed("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...installed, ...types], {
    cwd: consumer
  })
}, 300_000)

afterAll(() => rmSync(consumer, { recursive: true }), 120_000)

const command = (name: string) => join(consumer, "node_modules", ".bin", name)

/** Runs an action while the emulator runs, with the variables that it prints. */
const withEmulator = async (name: string, args: ReadonlyArray<string>, action: (env: Env) => Promise<void>) => {
  const child = spawn(command(name), args, { cwd: consumer, env: cleanEnvironment() })
  try {
    let text = ""
    for await (const chunk of child.stdout) {
      text += String(chunk)
      const variables = [...text.matchAll(/^export (\w+)='([^']*)'$/gm)].map((
        [, name = "", value = ""]
      ) => [name, value])
      if (variables.length === 4) {
        await action(Object.fromEntries(variables) as Env)
        return
      }
    }
    assert.fail(`The emulator exited: ${text}`)
  } finally {
    child.kill()
  }
}

const flaws: ReadonlyArray<[what: string, path: string, from: string | RegExp, to: string, found: RegExp]> = [
  ["types after the code", "package.json", /("types": "[^*"]*"),(\s*)("default": "[^"]*")/, "$3,$2$1", /^publint: /],
  ["an import without its ending", "dist/TokenSource.d.ts", "./AccessToken.js", "./AccessToken", /^attw: Internal/]
]

describe("the packed packages", { timeout: 120_000 }, () => {
  it("come after their dependencies", () => {
    const order = packages.map(({ name }) => name.replace("@store-api/", ""))
    assert.sameMembers(order, ["core", "platform-node", "emulator", "redis", "cli"])
    for (const [below, above] of [["core", "platform-node"], ["platform-node", "cli"], ["core", "redis"]] as const) {
      assert.isBelow(order.indexOf(below), order.indexOf(above))
    }
  })

  it.each(flaws)("are checked by publint and attw: %s", async (_, path, from, to, found) => {
    const problems = await allProblemsOf(new Map([...core, [path, core.get(path)?.replace(from, to) ?? ""]]))
    assert.isNotEmpty(problems)
    for (const problem of problems) assert.match(problem, found)
  })
})

describe("a user outside the workspace", { timeout: 240_000 }, () => {
  it("installs what the README pins, and one copy of each", async () => {
    assert.includeMembers(installLine, ["@store-api/core", "@store-api/platform-node"])
    const { peerDependencies = {} } = JSON.parse(core.get("package.json") ?? "") as { peerDependencies?: Env }
    assert.include(installLine, `effect@${peerDependencies["effect"] ?? "?"}`)
    for (const { name } of packages) {
      assert.isFalse(existsSync(join(consumer, "node_modules", name, "node_modules")), `${name} has a second copy`)
    }
    await succeed("npm", ["ls", "--all"], { cwd: consumer })
  })

  it("imports every module by its path, and nothing internal", async () => {
    assert.includeMembers(open, ["@store-api/core/TokenResponse", "@store-api/platform-node/NodeHttp"])
    assert.includeMembers(closed, ["@store-api/core/internal/provider/tokenState", "@store-api/emulator/bin"])
    writeFileSync(
      join(consumer, "paths.js"),
      `for (const path of ${JSON.stringify([...open, ...closed])}) {
         const found = await import(path).then(() => "open", ({ code }) => code)
         console.log(path + " " + found)
       }`
    )
    const { stdout } = await succeed(process.execPath, ["paths.js"], { cwd: consumer })
    assert.deepStrictEqual(stdout.trim().split("\n"), [
      ...open.map((path) => `${path} open`),
      ...closed.map((path) => `${path} ERR_PACKAGE_PATH_NOT_EXPORTED`)
    ])
  })

  it.each(["nodenext", "bundler"])(
    "compiles the README's example and every public module strictly under %s, and finds a mistake",
    async (moduleResolution) => {
      const paths = open.map((path, index) => `export * as m${index} from ${JSON.stringify(path)}\n`)
      const mistaken = readmeExample.replace("\"TokenRefusedError\"", "\"NoSuchError\"")
      for (const [name, code] of Object.entries({ example: readmeExample, mistaken, paths: paths.join("") })) {
        writeFileSync(join(consumer, `${name}.ts`), code)
      }
      const compilerOptions = {
        ...{ moduleResolution, module: moduleResolution === "bundler" ? "esnext" : moduleResolution },
        ...{ target: "ES2022", lib: ["ES2022", "DOM", "DOM.Iterable"], types: ["node"] },
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        // Checking the declarations of all packages takes most of the time, and once is enough.
        skipLibCheck: moduleResolution === "bundler"
      }
      writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
      const { stdout } = await run(command("tsc"), ["--pretty", "false"], { cwd: consumer })
      const errors = stdout.split("\n").filter((line) => line.includes(": error TS"))
      assert.isNotEmpty(errors)
      for (const error of errors) assert.match(error, /^mistaken\.ts/)
    }
  )

  it("runs the README's example against the emulator", () =>
    withEmulator("store-api-emulator", [], async (variables) => {
      const { outputText } = ts.transpileModule(readmeExample, { compilerOptions: { module: ts.ModuleKind.ESNext } })
      writeFileSync(join(consumer, "readme.mjs"), outputText)
      const { stderr, stdout } = await succeed(process.execPath, ["readme.mjs"], { cwd: consumer, env: variables })
      assert.strictEqual(stderr, "")
      assert.match(stdout, /^200 \{[^]*path: '\/orders'/)
      assert.notInclude(stdout, variables["STORE_API_CLIENT_SECRET"] ?? "?")
    }))

  it("has the command line, which acquires one token for several runs and prints it when asked", () =>
    withEmulator("store-api", ["emulator"], async (variables) => {
      const env = { ...variables, STORE_API_TOKEN_FOLDER: join(consumer, "tokens") }
      const first = await succeed(command("store-api"), ["token"], { cwd: consumer, env })
      assert.match(first.stdout, /^[\w+/=.~-]{20,}\n$/)
      assert.deepStrictEqual(await run(command("store-api"), ["token"], { cwd: consumer, env }), first)
    }))
})
