/** Runs the contract's checks for core on the `fetch` of a runtime, and prints each result. */
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { run, start } from "./processes.mjs"

const deadline = 300_000

/** The first line that a process writes to one of its streams. */
const firstLine = (stream, what) =>
  new Promise((resolve, reject) => {
    let text = ""
    const timer = setTimeout(() => reject(new Error(`${what} did not start within 30 s`)), 30_000)
    stream.setEncoding("utf8").on("data", (chunk) => {
      text += chunk
      if (!text.includes("\n")) return
      clearTimeout(timer)
      resolve(text.split("\n")[0])
    }).once("close", () => {
      clearTimeout(timer)
      reject(new Error(`${what} exited before it was ready`))
    })
  })

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
    const timer = setTimeout(end, 5000)
    await ended
    clearTimeout(timer)
  }
}

/** Runs a program that may connect to this machine only, and download nothing. */
const commands = {
  node: [],
  bun: ["--no-install"],
  deno: [
    ...["run", "--no-remote", "--cached-only", "--no-prompt", "--no-config", "--no-lock"],
    ...["--node-modules-dir=manual", "--allow-net=127.0.0.1"]
  ]
}

/** Runs a process that prints each outcome as a line of JSON. */
const asProgram = (binary, flags) => async (folder, laboratory, report) => {
  const { problem, status, stderr } = await run(binary, [...flags, "main.mjs", laboratory], {
    cwd: folder,
    deadline,
    env: { NO_COLOR: "1" },
    onLine: (line) => report(JSON.parse(line))
  })
  return status === 0 ? [] : [`the program ended with ${problem ?? status}: ${stderr.slice(0, 2000)}`]
}

/** Runs a server whose worker runs one check per request. */
const asWorker = (binary) => async (folder, laboratory, report) => {
  const { child, end, ended } = start(binary, ["serve", "--control-fd=3", "workerd.capnp"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe", "pipe"]
  })
  // workerd logs each failed connection, and the checks cause many.
  let errors = ""
  child.stderr.setEncoding("utf8").on("data", (text) => errors += text)
  const ask = async (port, query) => {
    const response = await fetch(`http://127.0.0.1:${port}/?${new URLSearchParams(query)}`, {
      signal: AbortSignal.timeout(60_000)
    })
    if (!response.ok) throw new Error(`the response has status ${response.status}`)
    return response.json()
  }
  try {
    const { port } = JSON.parse(await firstLine(child.stdio[3], "workerd"))
    const { declared } = await ask(port, {})
    // Each check has its own emulator, and most of its time is waiting.
    const left = Array.from({ length: declared }, (_, check) => check)
    const asker = async () => {
      for (let check = left.shift(); check !== undefined; check = left.shift()) {
        report(await ask(port, { laboratory, check }))
      }
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
  const act = kind === "workerd" ? asWorker(binary) : asProgram(binary, commands[kind])
  const problems = await withLaboratory(folder, (laboratory) => act(folder, laboratory, report))
  const names = new Set(outcomes.map(({ name }) => name))
  if (declared === 0 || names.size !== declared) problems.push(`${names.size} of ${declared} checks were run`)
  const failed = outcomes.filter(({ problem }) => problem !== undefined).length
  return {
    passed: outcomes.length - failed,
    failed: failed === 0 && problems.length > 0 ? 1 : failed,
    problems
  }
}
