/**
 * A process that is one member of a fleet, whose orders are those of `support/fleet.ts`. With settings (argument 1), it
 * only gets one token, writes `done`, and exits unless it leaves its layer open (argument 2: `"leaked"`).
 */
import { Effect, Exit, Scope } from "effect"
import { serve } from "../../../platform-node/test/support/serve.js"
import type { Order } from "../support/fleet.js"
import * as Member from "../support/member.js"

let scope = Effect.runSync(Scope.make())
let member: Member.Member | undefined

const open = (settings: Member.Settings) =>
  Effect.gen(function*() {
    yield* Scope.close(scope, Exit.void)
    scope = yield* Scope.make()
    member = yield* Effect.orDie(Scope.extend(Member.make(settings), scope))
    return member
  })

const [settings, end] = process.argv.slice(2)

if (settings === undefined) {
  serve((order: Order) => {
    if (order.name === "open") return Effect.asVoid(open(order.settings))
    if (member === undefined) return Effect.dieMessage("the member is not open")
    return order.name === "begin" ? member.begin(order.every) : member[order.name]
  })
} else {
  const program = Effect.gen(function*() {
    const { get } = yield* open(JSON.parse(settings) as Member.Settings)
    yield* get
    if (end !== "leaked") yield* Scope.close(scope, Exit.void)
    process.stdout.write("done\n")
  })
  void Effect.runPromise(program)
}
