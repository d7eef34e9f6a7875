/** Processes with a deadline, each in its own group, and temporary folders. None outlives this process. */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

/** An environment variable that marks all descendants, including those in other process groups. */
const mark = { name: "RUNTIMES_RUN", value: randomUUID() }

const folders = new Set()

const signal = (pid, name) => {
  try {
    process.kill(pid, name)
  } catch {
    // The process has just ended.
  }
}

/** Runs `use` with a folder that is removed afterwards, even if this process gets a signal. */
export const withFolder = async (use, parent = tmpdir()) => {
  const folder = mkdtempSync(join(parent, "runtimes-"))
  folders.add(folder)
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    folders.delete(folder)
  }
}

const environmentOf = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")
  } catch {
    return []
  }
}

/** The ids of all descendants of this process. */
const marked = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && environmentOf(pid).includes(`${mark.name}=${mark.value}`))

process.once("exit", () => {
  for (const pid of marked()) signal(pid, "SIGKILL")
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, () => process.exit(1))

/** Ends the processes that a run left behind, and returns their number. A process has five seconds to exit. */
export const endLeftovers = async () => {
  for (let tries = 0; tries < 50 && marked().length > 0; tries++) await sleep(100)
  const left = marked()
  for (const pid of left) signal(pid, "SIGKILL")
  return left.length
}

export const start = (command, args, { cwd, env = {}, stdio }) => {
  const child = spawn(command, args, {
    cwd,
    detached: true,
    env: { ...process.env, ...env, [mark.name]: mark.value },
    stdio
  })
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve({ status: null, problem: error.message }))
    const is = (status, signal) => resolve({ status, problem: signal ?? undefined })
    child.once("close", is)
    // A process that was left behind may keep the output open.
    child.once("exit", (...how) => setTimeout(is, 2000, ...how).unref())
  })
  return { child, ended, end: (name = "SIGKILL") => signal(-child.pid, name) }
}

/** Runs a command until it exits or reaches its deadline. `onLine` gets each line of output at once. */
export const run = async (command, args, { cwd, deadline, env, onLine = () => undefined, show = false }) => {
  const stdio = ["ignore", show ? "inherit" : "pipe", show ? "inherit" : "pipe"]
  const { child, end, ended } = start(command, args, { cwd, env, stdio })
  const output = { stdout: "", stderr: "" }
  let rest = ""
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    output.stdout += text
    const lines = (rest + text).split("\n")
    rest = lines.pop()
    lines.forEach(onLine)
  })
  child.stderr?.setEncoding("utf8").on("data", (text) => output.stderr += text)
  let late = false
  const timer = setTimeout(() => {
    late = true
    end()
  }, deadline)
  const { problem, status } = await ended
  clearTimeout(timer)
  return { ...output, status, problem: late ? `no end within ${deadline / 1000} s` : problem }
}
