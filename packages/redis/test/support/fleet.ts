/** Processes of the product, steered from a test. */
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Emulator } from "@store-api/emulator"
import { Cause, Context, Data, Deferred, Effect, FiberId, Layer, Redacted, type Scope } from "effect"
import { build } from "esbuild"
import type { RedisServer } from "./redisServer.js"

/** What `worker.mjs` puts its layers together from; without `redisUrl` it shares nothing. */
export interface Settings {
  readonly authUrl: string
  readonly apiUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redisUrl?: string
  readonly lease?: string
  readonly patience?: string
  readonly storeTimeout?: string
  /** Of the endpoint. */
  readonly attemptTimeout?: string
  readonly deadline?: string
}

export interface Shown {
  /** A digest. */
  readonly token: string
  readonly acquiredAt: number
}

/** What came of calls that went on for a while. */
export interface Calls {
  readonly calls: number
  /** Statuses other than 200, and the tags of errors. */
  readonly others: ReadonlyArray<string>
}

export interface Warning {
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
}

interface Results {
  readonly open: undefined
  readonly close: undefined
  readonly get: Shown
  readonly refresh: Shown
  readonly call: number
  /** Whether its store works. */
  readonly reaches: boolean
  readonly begin: undefined
  readonly end: Calls
  /** The `acquiredAt` of each token that this process asked the endpoint for. */
  readonly bought: ReadonlyArray<number>
  readonly warnings: ReadonlyArray<Warning>
}

export type Action = keyof Results

export interface Answer<A> {
  readonly value: A
  /** In the process, from the message to the answer, in milliseconds. */
  readonly took: number
}

/** An action that ended in an error of the product. */
export class Failure extends Data.TaggedError("Failure")<{ readonly tag: string; readonly took: number }> {}

export interface Member {
  readonly pid: number
  /** A process that does not answer in time, or has ended, is a defect. */
  readonly ask: <A extends Action>(action: A, parameters?: unknown) => Effect.Effect<Answer<Results[A]>, Failure>
  /** SIGKILL, SIGSTOP, SIGCONT; after SIGKILL it is gone. */
  readonly signal: (name: "SIGKILL" | "SIGSTOP" | "SIGCONT") => Effect.Effect<void>
}

export type Members = ReadonlyArray<Member>

interface Message {
  readonly id: number
  readonly took: number
  readonly value?: unknown
  readonly error?: string
}

const packages = fileURLToPath(new URL("../../../", import.meta.url))

/** `worker.mjs` and the sources of the packages in one file: so a process starts in a third of the time. */
const worker: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "worker-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
).pipe(
  Effect.map((folder) => join(folder, "worker.mjs")),
  Effect.tap((outfile) =>
    Effect.promise(() =>
      build({
        entryPoints: [fileURLToPath(new URL("./worker.mjs", import.meta.url))],
        outfile,
        bundle: true,
        platform: "node",
        format: "esm",
        logLevel: "warning",
        banner: { js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);` },
        plugins: [{
          name: "sources",
          setup: (plugin) =>
            plugin.onResolve({ filter: /^@store-api\// }, ({ path }) => {
              const [, name = "", module = "index"] = path.split("/")
              return { path: join(packages, name, "src", `${module}.ts`) }
            })
        }]
      })
    )
  )
)

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const killed = (child: ChildProcess) =>
  Effect.async<void>((resume) => {
    if (hasEnded(child)) {
      resume(Effect.void)
      return
    }
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

/** Longer than anything that is waited for; who does not answer by then hangs. */
const patience = "90 seconds"

/** One process, ready for actions. */
const member = (
  file: string,
  variables: Readonly<Record<string, string>>
): Effect.Effect<Member, never, Scope.Scope> =>
  Effect.gen(function*() {
    const waiting = new Map<number, Deferred.Deferred<Message>>()
    const answer = (id: number, message: Effect.Effect<Message>) => {
      const answered = waiting.get(id)
      waiting.delete(id)
      if (answered !== undefined) Deferred.unsafeDone(answered, message)
    }
    const expect = (id: number) => {
      const answered = Deferred.unsafeMake<Message>(FiberId.none)
      waiting.set(id, answered)
      return answered
    }
    const within = (answered: Deferred.Deferred<Message>, what: string) =>
      Effect.timeoutFailCause(Deferred.await(answered), {
        duration: patience,
        onTimeout: () => Cause.die(new Error(`A process did not answer: ${what}`))
      })

    const ready = expect(0)
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        fork(file, { execArgv: [], env: { ...process.env, NODE_OPTIONS: "", ...variables }, stdio: "inherit" })
          .on("message", (message: Message) => answer(message.id, Effect.succeed(message)))
          .once("exit", (code, signal) => {
            const ended = Effect.dieMessage(`A process ended: ${String(code ?? signal)}`)
            for (const id of [...waiting.keys()]) answer(id, ended)
          })
      ),
      killed
    )
    yield* within(ready, "the start")

    let last = 0
    return {
      pid: child.pid ?? 0,
      signal: (name) => name === "SIGKILL" ? killed(child) : Effect.sync(() => void child.kill(name)),
      ask: <A extends Action>(action: A, parameters?: unknown) =>
        Effect.suspend(() => {
          if (hasEnded(child)) return Effect.dieMessage(`A process has ended before ${action}`)
          const id = ++last
          const answered = expect(id)
          child.send({ id, action, parameters })
          return within(answered, action)
        }).pipe(
          Effect.flatMap(({ error, took, value }) =>
            error === undefined
              ? Effect.succeed({ value: value as Results[A], took }) // by the agreement with the worker
              : Effect.fail(new Failure({ tag: error, took }))
          )
        )
    }
  })

/** So many processes, started at once, with these variables in their environment. */
export const members = (
  count: number,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<Members, never, Scope.Scope> =>
  Effect.flatMap(
    worker,
    (file) => Effect.all(Effect.replicate(member(file, variables), count), { concurrency: "unbounded" })
  )

/** Processes that the tests of a file share: to start one costs half a second of a core. */
export class Fleet extends Context.Tag("Fleet")<Fleet, Members>() {}

export const layer = (count: number): Layer.Layer<Fleet> => Layer.scoped(Fleet, members(count))

/** All are told at once; all must do it. */
export const all = <A extends Action>(members: Members, action: A, parameters?: unknown) =>
  Effect.forEach(members, ({ ask }) => ask(action, parameters), { concurrency: "unbounded" })

/** The token of each. */
export const tokensOf = (
  answers: ReadonlyArray<Answer<Shown>>
): ReadonlyArray<string> => [...new Set(answers.map(({ value }) => value.token))]

/** The slowest of them, in milliseconds. */
export const slowest = (answers: ReadonlyArray<Answer<unknown>>): number => Math.max(...answers.map(({ took }) => took))

/** All want a new token, at once: how many came, how many token requests there were, and how long the slowest took. */
export const renewal = <E>(members: Members, asked: Effect.Effect<number, E>) =>
  Effect.gen(function*() {
    const before = yield* asked
    const answers = yield* all(members, "refresh")
    return { tokens: tokensOf(answers).length, requests: (yield* asked) - before, took: slowest(answers) }
  })

/** All over one Redis, and connected to it. */
export const share = (members: Members, redis: RedisServer, settings: Settings) =>
  Effect.zipRight(all(members, "open", { ...settings, redisUrl: redis.url }), connected(members))

export const connected = (members: Members) =>
  until("all are connected", Effect.map(all(members, "reaches"), (answers) => answers.every(({ value }) => value)))

/** What each was warned of. */
export const warningsOf = (members: Members) =>
  Effect.map(all(members, "warnings"), (answers) => answers.map(({ value }) => value))

/** The endpoint and the API of a fleet, and how often a token was asked for. */
export const shop = (options: Emulator.Options = {}) =>
  Effect.map(Emulator.make(options), (emulator) => ({
    ...emulator,
    asked: Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length),
    settings: {
      authUrl: emulator.url,
      apiUrl: emulator.url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Redacted.value(Emulator.demoClient.clientSecret),
      // What is slow only because the machine is must not look like a store that is down, or a process that died.
      storeTimeout: "45 seconds",
      lease: "1 minute",
      patience: "2 minutes"
    } satisfies Settings
  }))

/** Looks until it is so, for a minute and a half at most. */
export const until = <E, R>(what: string, isSo: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  isSo.pipe(
    Effect.zipLeft(Effect.sleep("10 millis")),
    Effect.repeat({ until: (is) => is }),
    Effect.timeoutFailCause({
      duration: patience,
      onTimeout: () => Cause.die(new Error(`It did not come true: ${what}`))
    }),
    Effect.asVoid
  )
