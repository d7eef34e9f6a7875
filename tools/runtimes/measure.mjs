/**
 * Runs core's contract on a runtime, and the whole test suite on a Node. Each process has a deadline and its own group.
 * None outlives this process.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { root } from "../workspace/workspace.mjs"

/** An environment variable that marks all descendants, including those in other process groups. */
const mark = { name: "RUNTIMES_RUN", value: randomUUID() }

const quietly = (use, otherwise) => {
  try {
    return use()
  } catch {
    // The process has just ended, or the file does not exist.
    return otherwise
  }
}

/** The ids of all descendants of this process. */
const marked = () =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== `${process.pid}`).map(Number).filter((pid) =>
    quietly(() => readFileSync(`/proc/${pid}/environ`, "utf8"), "").includes(`${mark.name}=${mark.value}\0`)
  )

const endMarked = () => marked().map((pid) => quietly(() => process.kill(pid, "SIGKILL"))).length

process.once("exit", endMarked)
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, () => process.exit(1))

/** Ends the processes that a run left behind, and returns their number. A process has five seconds to exit. */
export const endLeftovers = async () => {
  for (let tries = 0; tries < 50 && marked().length > 0; tries++) await sleep(100)
  return endMarked()
}

/** Starts a process. `ended` resolves with why it failed, or with `undefined`. */
const start = (command, args, { cwd, deadline = 300_000, env = {}, stdio }) => {
  const child = spawn(command, args, {
    cwd,
    detached: true,
    env: { ...process.env, ...env, [mark.name]: mark.value },
    stdio
  })
  const end = (name = "SIGKILL") => quietly(() => process.kill(-child.pid, name))
  const timer = setTimeout(end, deadline)
  const ended = new Promise((resolve) => {
    child.once("error", ({ message }) => resolve(message))
    const is = (status, signal) => resolve(status === 0 ? undefined : `ended with ${signal ?? status}`)
    child.once("close", is)
    // A process that was left behind may keep the output open.
    child.once("exit", (...how) => setTimeout(is, 2000, ...how).unref())
  }).finally(() => clearTimeout(timer))
  const output = []
  child.stderr?.on("data", (part) => output.push(part))
  return { child, end, ended, errors: () => Buffer.concat(output).toString().slice(-2000) }
}

/** The first line that a process writes to one of its streams within 30 seconds. */
const firstLine = async (stream, what) => {
  for await (const line of createInterface({ input: stream, signal: AbortSignal.timeout(30_000) })) return line
  throw new Error(`${what} did not start`)
}

/** Runs a program that may connect to this machine only, and download nothing. */
const flags = {
  node: [],
  bun: ["--no-install"],
  deno: [
    ...["run", "--no-remote", "--cached-only", "--no-prompt", "--no-config", "--no-lock"],
    ...["--node-modules-dir=manual", "--allow-net=127.0.0.1"]
  ]
}

/** Runs a process that prints each outcome as a line of JSON. */
const asProgram = async (kind, binary, folder, laboratory, report) => {
  const { child, ended, errors } = start(binary, [...flags[kind], "main.mjs", laboratory], {
    cwd: folder,
    env: { NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"]
  })
  createInterface({ input: child.stdout }).on("line", (line) => report(JSON.parse(line)))
  const problem = await ended
  return problem === undefined ? [] : [`the program ${problem}: ${errors()}`]
}

/** Runs a server whose worker runs one check per request. */
const asWorker = async (binary, folder, laboratory, report) => {
  const { child, end, ended, errors } = start(binary, ["serve", "--control-fd=3", "workerd.capnp"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe", "pipe"]
  })
  try {
    const { port } = JSON.parse(await firstLine(child.stdio[3], "workerd"))
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
    end("SIGTERM")
    await Promise.race([ended, sleep(5000)])
    end()
  }
}

/**
 * A program may crash before its end, or run no check. It has passed if it declared the number of its checks, and
 * each of them passed.
 */
export const contract = async (kind, binary, folder) => {
  const outcomes = new Map()
  let declared = 0
  const report = (outcome) => {
    const { name, problem } = outcome
    if ("declared" in outcome) declared = outcome.declared
    else {
      outcomes.set(name, problem)
      process.stdout.write(problem === undefined ? `  ok   ${name}\n` : `  FAIL ${name}\n${problem}\n`)
    }
  }
  const laboratory = start(process.execPath, [join(folder, "laboratoryServer.mjs")], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"]
  })
  const run = kind === "workerd" ? asWorker : asProgram.bind(undefined, kind)
  try {
    const problems = await run(binary, folder, await firstLine(laboratory.child.stdout, "The laboratory"), report)
    const failed = [...outcomes.values()].filter((problem) => problem !== undefined).length
    if (declared === 0 || outcomes.size !== declared) problems.push(`${outcomes.size} of ${declared} checks were run`)
    if (failed > 0) problems.push(`${failed} checks failed`)
    return { passed: outcomes.size - failed, failed, problems }
  } finally {
    laboratory.child.stdin.end()
    await Promise.race([laboratory.ended, sleep(5000)])
    laboratory.end()
  }
}

/** Runs the whole test suite on a Node, like `npm run test:all`, and fails if a test is skipped. */
export const suite = async (node, version) => {
  // Tests start `node`, `npm` and `npx` by name, and all of them must belong to this Node.
  const env = { CI: "true", PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
  const npm = start("npm", ["version", "--json"], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] })
  const { node: nodeOfNpm } = JSON.parse((await npm.child.stdout.toArray()).join(""))
  if (nodeOfNpm !== version) throw new Error(`npm would run on Node ${nodeOfNpm}, not on ${version}`)
  const folder = mkdtempSync(join(tmpdir(), "runtimes-"))
  try {
    const file = join(folder, "report.json")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const problem = await start(node, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...reporters], {
      // Six minutes on a quiet machine of two cores.
      ...{ cwd: root, deadline: 30 * 60_000, env, stdio: ["ignore", "inherit", "inherit"] }
    }).ended
    const { numFailedTestSuites = 1, numFailedTests: failed = 0, numPassedTests: passed = 0, numTotalTests = 0 } =
      quietly(() => JSON.parse(readFileSync(file, "utf8")), {})
    // A file that could not be loaded has no tests to count.
    const skipped = Math.max(numTotalTests - passed - failed, 0)
    const isBroken = problem !== undefined || numFailedTestSuites + failed + skipped > 0 || passed === 0
    const problems = isBroken ? [`the suite ${problem ?? "ended"}, ${failed} tests failed, ${skipped} skipped`] : []
    return { passed, failed, skipped, problems }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
