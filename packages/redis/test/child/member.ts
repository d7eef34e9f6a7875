/** A process that is one member of a fleet. Its orders are those of `support/fleet.ts`. */
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
  })

serve((order: Order) => {
  if (order.name === "open") return open(order.settings)
  if (member === undefined) return Effect.dieMessage("the member is not open")
  return order.name === "begin" ? member.begin(order.every) : member[order.name]
})
