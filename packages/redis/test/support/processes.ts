/** A fleet whose members are processes. */
import { Effect, type Scope } from "effect"
import { bundle } from "../../../platform-node/test/support/bundle.js"
import { type ChildProcess, start } from "../../../platform-node/test/support/childProcess.js"
import type { Start } from "./fleet.js"
import type { Member, Settings } from "./member.js"

/** An order to `child/member.ts`. */
export type Order =
  | { readonly name: "open"; readonly settings: Settings }
  | { readonly name: "begin"; readonly every: number }
  | { readonly name: Exclude<keyof Member, "begin"> }

/** Starts this number of processes with these environment variables. */
export const processes = (
  count: number,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<ReadonlyArray<ChildProcess>, never, Scope.Scope> =>
  Effect.flatMap(
    bundle(new URL("../child/member.ts", import.meta.url)),
    (file) => Effect.all(Effect.replicate(start(file, variables), count))
  )

/** Starts a member with these settings in the process. */
export const open = ({ ask }: ChildProcess, settings: Settings): Effect.Effect<Member> => {
  const order = (order: Order) => ask(order) as Effect.Effect<never> // the result of the member's method of that name
  return Effect.as(order({ name: "open", settings }), {
    get: order({ name: "get" }),
    refresh: order({ name: "refresh" }),
    call: order({ name: "call" }),
    isAcquiring: order({ name: "isAcquiring" }),
    reaches: order({ name: "reaches" }),
    acquired: order({ name: "acquired" }),
    warnings: order({ name: "warnings" }),
    begin: (every) => order({ name: "begin", every }),
    end: order({ name: "end" })
  })
}

/** A fleet of processes that the tests share, because the start of a process takes almost half a second of CPU time. */
export const fleetOfProcesses = (count: number): Effect.Effect<Start, never, Scope.Scope> =>
  Effect.map(
    processes(count),
    (all): Start => (count, settings) =>
      Effect.forEach(all.slice(0, count), (process) => open(process, settings), { concurrency: "unbounded" })
  )
