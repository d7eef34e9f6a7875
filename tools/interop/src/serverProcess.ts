/** The process of one server: the child's side of `inOwnProcess`. It ends when its parent does. */
import { Effect, Exit, Scope } from "effect"
import type { Running } from "./AuthorizationServer.js"
import * as servers from "./servers.js"

/** `start` comes first, and `stop` last. */
export type Order =
  | { readonly name: "start"; readonly server: keyof typeof servers; readonly life: number }
  | { readonly name: "counts" | "stop" }
  | { readonly name: "revoke"; readonly token: string }

const scope = Effect.runSync(Scope.make())

let running: Running

const perform = (order: Order): Effect.Effect<unknown> => {
  switch (order.name) {
    case "start":
      return Effect.map(Scope.extend(servers[order.server].start(order.life), scope), (started) => {
        running = started
        return { authUrl: started.authUrl, apiUrl: started.apiUrl, canRevoke: started.revoke !== undefined }
      })
    case "counts": {
      const { calls, tokenRequests, unauthorized } = running
      return Effect.all({ calls, tokenRequests, unauthorized })
    }
    case "revoke":
      return running.revoke?.(order.token) ?? Effect.dieMessage("No revocation is offered.")
    case "stop":
      return Scope.close(scope, Exit.void)
  }
}

process.once("disconnect", () => void Effect.runPromise(perform({ name: "stop" })).finally(() => process.exit()))
process.on("message", ({ id, order }: { readonly id: number; readonly order: Order }) => {
  void Effect.runPromise(perform(order)).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: String(error) })
  )
})
