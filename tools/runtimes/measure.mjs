/** Runs the checks for core on the `fetch` of a runtime, and the whole test suite on a Node. */
import { readFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { root } from "../workspace/workspace.mjs"
import { run, start, withFolder } from "./processes.mjs"

/** The first line that a process writes to one of its streams within 30 seconds. */
const firstLine = async (stream, what) => {
  for await (const line of createInterface({ input: stream, signal: AbortSignal.timeout(30_000) })) return line
  throw new Error(`${what} did not start`)
}

/** Runs `use` with the URL of a laboratory, and stops it afterwards. */
const withLaboratory = async (folder, use) => {
  const { child, end, ended } = start(process.execPath, [join(folder, "laboratoryServer.mjs")], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"]
  })
  try {
    return await use(await firstLine(child.stdout, "The laboratory"))
  } finally {
    child.stdin.end()
    await Promise.race([ended, sleep(5000)])
    end()
  }
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
  const { problem, status, stderr } = await run(binary, [...flags[kind], "main.mjs", laboratory], {
    cwd: folder,
    deadline: 300_000,
    env: { NO_COLOR: "1" },
    onLine: (line) => report(JSON.parse(line))
  })
  return status === 0 ? [] : [`the program ended with ${problem ?? status}: ${stderr.slice(0, 2000)}`]
}

/** Runs a server whose worker runs one check per request. */
const asWorker = async (binary, folder, laboratory, report) => {
  const { child, end, ended } = start(binary, ["serve", "--control-fd=3", "workerd.capnp"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe", "pipe"]
  })
  // workerd logs each failed connection, and the checks cause many.
  let errors = ""
  child.stderr.setEncoding("utf8").on("data", (text) => errors += text)
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
    return [`${error.message}: ${errors.slice(-2000)}`]
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
  const outcomes = []
  let declared = 0
  const report = (outcome) => {
    if ("declared" in outcome) {
      declared = outcome.declared
      return
    }
    outcomes.push(outcome)
    process.stdout.write(`  ${outcome.problem === undefined ? "ok  " : "FAIL"} ${outcome.name}\n`)
    if (outcome.problem !== undefined) process.stdout.write(`       ${outcome.problem.replaceAll("\n", "\n       ")}\n`)
  }
  const problems = await withLaboratory(folder, (laboratory) =>
    kind === "workerd"
      ? asWorker(binary, folder, laboratory, report)
      : asProgram(kind, binary, folder, laboratory, report))
  const { size } = new Set(outcomes.map(({ name }) => name))
  if (declared === 0 || size !== declared) problems.push(`${size} of ${declared} checks were run`)
  const failed = outcomes.filter(({ problem }) => problem !== undefined).length
  return {
    passed: outcomes.length - failed,
    failed: failed === 0 && problems.length > 0 ? 1 : failed,
    problems
  }
}

const reportIn = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return {}
  }
}

/** Runs the whole test suite on a Node, like `npm run test:all`, and fails if a test is skipped. */
export const suite = async (node, version) => {
  // Tests start `node`, `npm` and `npx` by name, and all of them must belong to this Node.
  const env = { CI: "true", PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
  const npm = await run("npm", ["version", "--json"], { cwd: root, deadline: 60_000, env })
  const { node: nodeOfNpm } = JSON.parse(npm.stdout)
  if (nodeOfNpm !== version) throw new Error(`npm would run on Node ${nodeOfNpm}, not on ${version}`)
  return withFolder(async (folder) => {
    const file = join(folder, "report.json")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const { problem, status } = await run(
      node,
      [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...reporters],
      // Six minutes on a quiet machine of two cores.
      { cwd: root, deadline: 30 * 60_000, env, show: true }
    )
    const { numFailedTestSuites = 0, numPassedTests = 0, numTotalTests = 0, testResults = [] } = reportIn(file)
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
    const failed = tests.filter((test) => test.status === "failed").length
    // A file that could not be loaded has no tests to count.
    const skipped = Math.max(numTotalTests - numPassedTests - failed, 0)
    const broken = status !== 0 || numFailedTestSuites > 0 || numPassedTests === 0 || failed > 0 || skipped > 0
    return {
      passed: numPassedTests,
      failed: broken ? Math.max(failed, 1) : 0,
      skipped,
      problems: broken ? [`the suite ended with ${problem ?? status}, ${skipped} tests skipped`] : []
    }
  })
}
