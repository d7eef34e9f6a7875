/** The process of one server: the child's side of `test/support/ownProcess.ts`. It ends when its parent does. */
import { Effect, Exit, Scope } from "effect"
import type { AuthorizationServer, Running } from "./AuthorizationServer.js"

/** Each module exports a server of its own name. `start` comes first, and `stop` last. */
export type Order =
  | { readonly name: "start"; readonly server: string; readonly life: number }
  | { readonly name: "counts" | "stop" }
  | { readonly name: "revoke"; readonly token: string }

export interface Started {
  readonly authUrl: string
  readonly apiUrl: string
}

export type Counts = Record<"calls" | "tokenRequests" | "unauthorized", number>

const scope = Effect.runSync(Scope.make())

let running: Running

const perform = async (order: Order): Promise<unknown> => {
  switch (order.name) {
    case "start": {
      const module = await import(`./${order.server}.js`) as Record<string, AuthorizationServer | undefined>
      const server = module[order.server]
      if (server === undefined) throw new Error(`The module does not export ${order.server}.`)
      running = await Effect.runPromise(Scope.extend(server.start(order), scope))
      return { authUrl: running.authUrl, apiUrl: running.apiUrl } satisfies Started
    }
    case "counts": {
      const { calls, tokenRequests, unauthorized } = running
      return await Effect.runPromise(Effect.all({ calls, tokenRequests, unauthorized })) satisfies Counts
    }
    case "revoke": {
      await Effect.runPromise(running.revoke?.(order.token) ?? Effect.dieMessage("No revocation is offered."))
      return
    }
    case "stop": {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      return
    }
  }
}

const stop = () => void perform({ name: "stop" }).finally(() => process.exit())

process.once("disconnect", stop)
process.on("message", ({ id, order }: { readonly id: number; readonly order: Order }) => {
  void perform(order).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: String(error) })
  )
})
