import { type ChildProcess, fork, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"

/** What `child/tokenStore.mjs` understands. */
export type Order =
  | { readonly name: "ready" }
  | { readonly name: "remove"; readonly keys: ReadonlyArray<string>; readonly entry: string }
  | { readonly name: "lease"; readonly key: string; readonly millis: number }
  | { readonly name: "putForEver"; readonly key: string }
  | { readonly name: "sweepForEver" }
  | { readonly name: "comeAndGo"; readonly key: string; readonly times: number }
  | { readonly name: "putAndGet"; readonly key: string; readonly times: number }
  | { readonly name: "workAlone"; readonly key: string; readonly file: string; readonly times: number }

/** What it answers: a number, or the sentence of the error. */
export type Answer = number | string

export interface StoreProcess {
  readonly ask: (order: Order) => Effect.Effect<Answer>
  /** Gives the order, and waits for nothing. */
  readonly tell: (order: Order) => Effect.Effect<void>
  /** The end of the process, without a last word. */
  readonly kill: Effect.Effect<void>
}

const worker = fileURLToPath(new URL("../child/tokenStore.mjs", import.meta.url))

/** The processes run what is built: to translate the sources in each of them takes seconds. */
export const build = () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const cwd = fileURLToPath(new URL("../..", import.meta.url))
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}

const start = (folder: string): Effect.Effect<StoreProcess, never, Scope.Scope> =>
  Effect.gen(function*() {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => fork(worker, [folder], { env: { ...process.env, NODE_OPTIONS: "" } })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const ask = (order: Order) =>
      Effect.async<Answer>((resume) => {
        const ended = () => resume(Effect.dieMessage("the process ended before it answered"))
        child.once("exit", ended)
        child.once("message", (answer) => {
          child.off("exit", ended)
          resume(Effect.succeed(answer as Answer))
        })
        child.send(order)
      })
    return { ask, tell: (order) => Effect.sync(() => child.send(order)), kill: killed(child) }
  })

const killed = (child: ChildProcess): Effect.Effect<void> =>
  Effect.async((resume) => {
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

/** So many processes on the store of one folder, all ready to begin; gone with the scope. */
export const startMany = (folder: string, count: number) =>
  Effect.gen(function*() {
    const processes = yield* Effect.all(Effect.replicate(start(folder), count))
    yield* Effect.forEach(processes, ({ ask }) => ask({ name: "ready" }), { concurrency: "unbounded" })
    return processes
  })

/** The same order to all at once. */
export const askAll = (processes: ReadonlyArray<StoreProcess>, order: Order) =>
  Effect.forEach(processes, ({ ask }) => ask(order), { concurrency: "unbounded" })
