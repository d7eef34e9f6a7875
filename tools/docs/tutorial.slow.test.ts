/**
 * Follows each page of docs/tutorial literally, from an empty folder. Needs `npm run build`. `npm run effect4` follows
 * them with Effect 4.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { patient } from "@store-api/testing/childProcess"
import { freePort } from "@store-api/testing/loopback"
import { end, untilPrinted } from "@store-api/testing/network"
import { Effect } from "effect"
import ts from "typescript"
import { afterAll, assert, describe, it } from "vitest"
import { cleanEnvironment, root, run } from "../support/command.js"
import { type CodeBlock, fenced, read } from "../support/pages.js"

const pages = ["1-first-call", "2-testing", "3-several-instances", "4-production"].map((
  name
) => `docs/tutorial/${name}.md`)

/** The emulator's terminal in the text: token requests and requests for orders, for each run of main.ts and many.ts. */
const shown = new Map([
  ["docs/tutorial/1-first-call.md", [[1, 1], [1, 0], [0, 0], [0, 0], [1, 0], [1, 100]]],
  ["docs/tutorial/2-testing.md", [[3, 1]]],
  ["docs/tutorial/3-several-instances.md", [[1, 2], [1, 1]]]
])

/** The folder in which `npm run effect4` has built the packages for Effect 4 and generated the files. */
const effect4 = process.env["STORE_API_EFFECT4"]

const shop = mkdtempSync(join(tmpdir(), "tutorial-"))
const inShop = (name: string) => join(shop, name)
writeFileSync(inShop("package.json"), JSON.stringify({ private: true, type: "module" }))
// The versions that the pages install: those of the catalog, and our built packages.
symlinkSync(join(effect4 ?? join(root, "examples"), "node_modules"), inShop("node_modules"))

/** The ports that the pages name may be in use. */
const ports = new Map<string, string>()
for (const port of ["4010", "6390", "8080", "9464"]) {
  ports.set(port, `${await Effect.runPromise(freePort)}`)
}
const withFreePorts = (text: string) =>
  text.replace(/\b(4010|6390|8080|9464)\b/g, (port) => ports.get(port) ?? port)

/** The variables that the reader sets in the first terminal. */
const variables: Record<string, string> = { PORT: ports.get("8080") ?? "", NO_COLOR: "1" }

/** A program that runs in another terminal, and its output. */
interface Terminal {
  readonly child: ChildProcess
  output: string
  /** Set when its output is complete, which may be after its exit. */
  hasEnded: boolean
}

const terminals = new Map<string, Terminal>()

/** Waits until the program of a terminal has printed this. */
const waitFor = (terminal: Terminal, expected: RegExp) =>
  Effect.runPromise(
    untilPrinted(expected, () => [terminal.output], () => terminal.hasEnded)
  )

const open = async (
  name: string,
  command: string,
  args: ReadonlyArray<string>,
  isUp: RegExp
) => {
  const child = spawn(command, args, {
    cwd: shop,
    env: { ...cleanEnvironment(), ...variables }
  })
  const terminal = { child, output: "", hasEnded: false }
  terminals.set(name, terminal)
  const append = (text: Buffer) => terminal.output += text.toString()
  child.stdout.on("data", append)
  child.stderr.on("data", append)
  child.on("close", () => (terminal.hasEnded = true))
  await waitFor(terminal, isUp)
}

/** Sends the same signal as Ctrl+C. */
const close = async (name: string) => {
  const child = terminals.get(name)?.child
  terminals.delete(name)
  await Effect.runPromise(end(child, "SIGINT"))
}

afterAll(async () => {
  for (const name of terminals.keys()) await close(name)
  rmSync(shop, { recursive: true })
})

const compilerOptions: ts.CompilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2022,
  rewriteRelativeImportExtensions: true
}

/** Saves a file as the reader does, and its JavaScript beside it, since Node 20 does not run TypeScript. */
const save = (block: CodeBlock) => {
  const generated = `${block.file.replaceAll(/\W/g, "-")}-${block.line}.ts`
  const code = effect4 === undefined
    ? block.code
    : readFileSync(join(effect4, "packages", "examples", generated), "utf8")
  const [, name = assert.fail(`no name of a file in\n${code}`)] =
    /^\/\/ (\S+)\.ts$/m.exec(code) ?? []
  writeFileSync(inShop(`${name}.ts`), withFreePorts(code))
  if (name.endsWith(".test")) return
  writeFileSync(
    inShop(`${name}.js`),
    ts.transpileModule(withFreePorts(code), { compilerOptions }).outputText
  )
}

/** Saves a file that is not a module. The health check of a Dockerfile runs against the running server. */
const saveAs = async ({ code }: CodeBlock) => {
  const [, name = assert.fail(`no name of a file in\n${code}`)] =
    /^(?:#|\/\/) (\S+)$/m.exec(code) ?? []
  writeFileSync(inShop(name), withFreePorts(code))
  const [, healthCheck] = /^HEALTHCHECK CMD (.*)$/m.exec(withFreePorts(code)) ?? []
  if (healthCheck === undefined) return
  const [, ...args] = JSON.parse(healthCheck) as ReadonlyArray<string>
  assert.strictEqual((await run(process.execPath, args)).status, 0, "the server is healthy")
  const [, other = ""] = args
  assert.strictEqual(
    (await run(process.execPath, ["-e", other.replace("/health", "/none")])).status,
    1,
    "no server"
  )
}

const bash = (line: string) => run("bash", ["-c", line], { cwd: shop, env: variables })

/** Types one line into a shell. Returns what it printed, and its exit code. */
const type = async (
  line: string
): Promise<{ readonly output: string; readonly status: number | null }> => {
  const done = { output: "", status: 0 }
  // Another test compares the versions that the pages install with the catalogs.
  if (/^(mkdir shop|npm (init|install|pkg)|docker) /.test(line)) return done
  const [, exported, value = ""] = /^export (\w+)='?([^']*)'?$/.exec(line) ?? []
  if (exported !== undefined) {
    variables[exported] = value
    // The page does not say how to start the server.
    if (exported === "STORE_API_REDIS_URL") {
      Object.assign(variables, patient)
      const args = ["--port", ports.get("6390") ?? "", "--save", "", "--dir", shop]
      await open("redis", "redis-server", args, /Ready to accept connections/)
    }
    return done
  }
  if (line.startsWith("unset ")) {
    Reflect.deleteProperty(variables, line.slice("unset ".length))
    return done
  }
  const emulator = "npx --no-install store-api-emulator"
  const command = join(effect4 ?? root, "packages", "emulator", "bin", "store-api-emulator.js")
  if (line.startsWith(`${emulator} --`)) {
    await open(
      "emulator",
      process.execPath,
      [command, ...line.split(" ").slice(3)],
      /STORE_API_CLIENT_SECRET/
    )
    return done
  }
  if (line === "node server.ts") {
    await close("server")
    await open("server", process.execPath, ["server.js"], /Listening on/)
    return done
  }
  const typed = line
    .replace(emulator, `"${process.execPath}" "${command}"`)
    .replace(/node (\w+)\.ts$/, `"${process.execPath}" $1.js`)
    .replace(
      /^npx vitest/,
      `"${join(effect4 ?? root, "node_modules", ".bin", "vitest")}" --root .`
    )
    .replace(/^npx tsc/, `"${join(root, "node_modules", ".bin", "tsc")}"`)
  const { status, stderr, stdout } = await bash(typed)
  return { output: stdout + stderr, status }
}

/** The output of the emulator. Our own last request shows that the output is complete. */
const logOfEmulator = async () => {
  const emulator = terminals.get("emulator") ?? assert.fail("the emulator does not run")
  const path = `/last-${emulator.output.length}`
  await fetch(`${variables["STORE_API_URL"] ?? ""}${path}`)
  await waitFor(emulator, new RegExp(` ← \\d+ GET ${path} `))
  return emulator.output
}

const ended = (log: string, subject: string) =>
  log.match(new RegExp(` ← \\d+ ${subject} `, "g"))?.length ?? 0

const occurrences = (text: string, part: string) => text.split(part).length - 1

/** Follows a page. Returns the requests that the emulator got from each block that runs main.ts or many.ts. */
const follow = async (page: string) => {
  const requests: Array<ReadonlyArray<number>> = []
  let output = ""
  let seen = terminals.get("emulator")?.output.length ?? 0
  for (const block of fenced(page, read(page))) {
    const lines = withFreePorts(block.code).split("\n")
    if (block.language === "ts") save(block)
    if (["json", "dockerfile"].includes(block.language)) await saveAs(block)
    if (block.language === "sh") {
      output = ""
      for (const line of lines) {
        const { output: printed, status } = await type(line)
        output += printed
        // A command fails if and only if it prints an error.
        assert.strictEqual(status, /^.*Error: /m.test(printed) ? 1 : 0, `${line}\n${printed}`)
      }
      if (lines.some((line) => /node (main|many)\.ts$/.test(line))) {
        const log = await logOfEmulator()
        requests.push(
          ["POST /v1/oauth/accesstoken", "GET /orders"].map((path) =>
            ended(log.slice(seen), path)
          )
        )
        seen = log.length
      }
    }
    if (block.language === "text") {
      for (const line of new Set(lines)) {
        const expected = lines.filter((other) => other === line).length
        assert.isAtLeast(
          occurrences(output, line),
          expected,
          `${page}:${block.line}: ${line}\nis not in\n${output}`
        )
      }
    }
  }
  return requests
}

const isLeftOut =
  ["redis-server", "curl"].some((command) => spawnSync(command, ["--version"]).status !== 0) &&
  process.env["CI"] !== "true"

describe.skipIf(isLeftOut)("docs/tutorial", () => {
  it.each(pages)("%s: each command and output works as described", async (page) => {
    assert.deepStrictEqual(await follow(page), shown.get(page) ?? [])
  })
})
