/** Runs an example in a process, with variables. Reads its lines. */
import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Emulator } from "@store-api/emulator"
import { bundleAll } from "@store-api/testing/childProcess"
import { Effect, Redacted, type Scope } from "effect"

/** The folder in which `npm run effect4` has generated the packages and the examples for Effect 4. */
export const effect4 = process.env["STORE_API_EFFECT4"]

const root = pathToFileURL(effect4 ?? fileURLToPath(new URL("../../..", import.meta.url)))
const source = new URL(`${root.href}/examples/src/`)

/** Bundles the examples, and returns the folder of the bundles. */
export const bundled: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  bundleAll(
    readdirSync(source).filter((file) => file.endsWith(".ts")).map((file) =>
      new URL(file, source)
    ),
    fileURLToPath(`${root.href}/packages`)
  ),
  ([path = ""]) => dirname(path)
)

export interface Program {
  /** The text that it has written to stdout and stderr. */
  readonly output: Effect.Effect<string>
  /**
   * Waits for a line. Fails with the whole output if the program exits first, or does not print the line within 5
   * minutes.
   */
  readonly says: (expected: string | RegExp) => Effect.Effect<string, string>
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  /** The exit code and the whole output. */
  readonly ended: Effect.Effect<{ readonly status: number | null; readonly output: string }>
}

/** The environment of the tests without proxies and variables of the service. */
const cleanEnvironment = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) =>
      !/^(STORE_API_|(https?|no|all)_proxy$|NO_COLOR$|FORCE_COLOR$|NODE_OPTIONS$|VITEST|NODE_ENV$)/i
        .test(name)
    )
  )

/** Starts a program of the folder. The end of the scope kills it if it still runs. */
export const start = (
  folder: string,
  name: string,
  variables: Readonly<Record<string, string>>
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, [join(folder, `${name}.mjs`)], {
          env: { ...cleanEnvironment(), NO_COLOR: "1", ...variables },
          stdio: ["ignore", "pipe", "pipe"]
        })
        return { child, written: reading(child), closed: closing(child) }
      }),
      ({ child, closed }) =>
        Effect.zipRight(Effect.sync(() => child.kill("SIGKILL")), Effect.promise(() => closed))
    ),
    ({ child, closed, written }) => {
      const output = Effect.sync(written.text)
      return {
        output,
        says: (expected) =>
          Effect.async<string, string>((resume) => {
            const look = () => {
              const line = written.text().split("\n").find((line) =>
                typeof expected === "string" ? line.includes(expected) : expected.test(line)
              )
              if (line !== undefined) resume(Effect.succeed(line))
              return line !== undefined
            }
            if (look()) return
            written.listeners.add(look)
            void closed.then(() =>
              look() || resume(Effect.fail(`${name} ended:\n${written.text()}`))
            )
            return Effect.sync(() => written.listeners.delete(look))
          }).pipe(
            Effect.timeoutFail({
              duration: "5 minutes",
              onTimeout: () => `${name} does not say ${String(expected)}:\n${written.text()}`
            })
          ),
        signal: (name) => Effect.sync(() => child.kill(name)),
        ended: Effect.map(
          Effect.promise(() => closed),
          (status) => ({ status, output: written.text() })
        )
      }
    }
  )

const reading = (child: ChildProcess) => {
  let all = ""
  const listeners = new Set<() => unknown>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      all += text
      for (const listener of listeners) listener()
    })
  }
  return { listeners, text: () => all }
}

const closing = (child: ChildProcess) =>
  new Promise<number | null>((resolve) => {
    child.on("close", resolve)
  })

/** Starts a program and waits until it exits. */
export const run = (...line: Parameters<typeof start>) =>
  Effect.scoped(Effect.flatMap(start(...line), ({ ended }) => ended))

/** The variables that the emulator's command prints. */
export const variablesOf = (
  emulator: Emulator.Service,
  prefix = "STORE_API"
): Readonly<Record<string, string>> => ({
  [`${prefix}_AUTH_URL`]: emulator.url,
  [`${prefix}_URL`]: emulator.url,
  [`${prefix}_CLIENT_ID`]: Emulator.demoClient.clientId,
  [`${prefix}_CLIENT_SECRET`]: Redacted.value(Emulator.demoClient.clientSecret)
})

export const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (all) => all.filter(({ kind }) => kind === "token").length)

/** Asserts that none of these texts contains the secret or a token. */
export const secretsIn = (emulator: Emulator.Service, ...texts: ReadonlyArray<string>) =>
  Effect.map(
    emulator.tokens,
    (tokens) =>
      [...tokens.map(({ value }) => value), Emulator.demoClient.clientSecret]
        .map(Redacted.value)
        .flatMap((
          value
        ) => [value, encodeURIComponent(value), Buffer.from(value).toString("base64")])
        .filter((value) => texts.some((text) => text.includes(value)))
  )
