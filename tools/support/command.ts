/** Runs child processes for tests, and returns their output and exit code. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Finished {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What the program reads from its standard input. Default: nothing. */
  readonly input?: string
}

/** Variables of the service, of proxies and colours, and those that npm sets for the command that runs the tests. */
const left =
  /^(STORE_API_|npm_(config|package|lifecycle)_|(https?|no|all)_proxy$|NO_COLOR$|FORCE_COLOR$|NODE_OPTIONS$|VITEST|NODE_ENV$)/i

/** The environment for a child. */
export const cleanEnvironment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !left.test(name)))

/** Runs a program to its end. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: Options = {}
): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...cleanEnvironment(), ...options.env },
      stdio: "pipe"
    })
    child.stdin.end(options.input)
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    child.on("error", reject)
    child.on("close", (status) => resolve({ status, stdout, stderr }))
  })
