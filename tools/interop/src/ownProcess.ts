/**
 * Runs a server and its resource in their own process, like those of a store, so that neither they nor their callers
 * wait for the other's event loop. Needs the build of `npm run interop`.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import type { AuthorizationServer, Running } from "./AuthorizationServer.js"

export interface Question {
  readonly id: number
  readonly ask: "counts" | "revoke"
  readonly token: string
}

export interface Counts {
  readonly calls: number
  readonly tokenRequests: number
  readonly unauthorized: number
}

export interface Answer {
  readonly id: number
  readonly counts?: Counts
}

interface Started {
  readonly apiUrl: string
  readonly authUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly revokes: boolean
}

// The path is the same from `src` and from `dist`.
const built = (file: string) => fileURLToPath(new URL(`../dist/${file}`, import.meta.url))

const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const end = (child: ChildProcess) =>
  Effect.async<void>((resume) => {
    if (ended(child)) {
      resume(Effect.void)
      return
    }
    child.once("exit", () => resume(Effect.void))
    child.disconnect()
  })

/** Waits for the next message. If the process ends instead, that is a defect. */
const message = <A>(child: ChildProcess, isIt: (message: object) => boolean): Effect.Effect<A> =>
  Effect.async((resume) => {
    const settle = (result: Effect.Effect<A>) => {
      forget()
      resume(result)
    }
    const onExit = () => settle(Effect.dieMessage("The server's process ended."))
    const onMessage = (message: object) => {
      if (isIt(message)) settle(Effect.succeed(message as A))
    }
    const forget = () => child.off("message", onMessage).off("exit", onExit)
    child.on("message", onMessage).once("exit", onExit)
    if (ended(child)) onExit()
    return Effect.sync(forget)
  })

const start = (file: string, name: string, life: number) =>
  Effect.gen(function*() {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => fork(built("serverProcess.js"), [built(file), name, String(life)], { execArgv: [] })),
      end
    )
    const started = yield* message<Started>(child, (message) => "authUrl" in message)
    let asked = 0
    const ask = (ask: Question["ask"], token = ""): Effect.Effect<Answer> =>
      Effect.suspend(() => {
        const id = ++asked
        child.send({ id, ask, token } satisfies Question)
        return message<Answer>(child, (message) => "id" in message && message.id === id)
      })
    const count = (name: keyof Counts) => Effect.map(ask("counts"), ({ counts }) => counts?.[name] ?? Number.NaN)
    const { apiUrl, authUrl, clientId, clientSecret, revokes } = started
    const running: Running = {
      apiUrl,
      authUrl,
      credentials: { clientId, clientSecret: Redacted.make(clientSecret) },
      calls: count("calls"),
      tokenRequests: count("tokenRequests"),
      unauthorized: count("unauthorized"),
      ...(revokes ? { revoke: (token) => Effect.asVoid(ask("revoke", Redacted.value(token))) } : {})
    }
    return running
  })

/** The server that `module` exports as `name`, in a new process for each start. */
export const inOwnProcess = (server: AuthorizationServer, module: string, name: string): AuthorizationServer => ({
  ...server,
  start: ({ life }) => start(module, name, life)
})
