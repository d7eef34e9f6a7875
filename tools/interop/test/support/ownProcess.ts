/**
 * Runs a server and its resource in their own process, like those of a store, so that neither they nor their callers
 * wait for the other's event loop. Needs the build of `npm run interop`.
 */
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { start } from "../../../../packages/platform-node/test/support/childProcess.js"
import type { AuthorizationServer } from "../../src/AuthorizationServer.js"
import type { Counts, Order, Started } from "../../src/serverProcess.js"

const program = fileURLToPath(new URL("../../dist/serverProcess.js", import.meta.url))

/** The server that the module of this name exports, in a new process for each start. */
export const inOwnProcess = (server: AuthorizationServer, module: string): AuthorizationServer => ({
  ...server,
  start: ({ life }) =>
    Effect.gen(function*() {
      const child = yield* start(program)
      const ask = <A>(order: Order) => Effect.orDie(child.ask(order)) as Effect.Effect<A>
      const started = yield* Effect.acquireRelease(
        ask<Started>({ name: "start", server: module, life }),
        () => ask({ name: "stop" })
      )
      const count = (name: keyof Counts) => Effect.map(ask<Counts>({ name: "counts" }), (counts) => counts[name])
      return {
        ...started,
        calls: count("calls"),
        tokenRequests: count("tokenRequests"),
        unauthorized: count("unauthorized"),
        revoke: server.revocation.offered ? (token) => ask({ name: "revoke", token }) : undefined
      }
    })
})
