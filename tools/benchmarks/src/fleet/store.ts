/** The store of a simulated fleet: the memory store with delays, a count of commands, and outages. */
import { TokenStore } from "@store-api/core"
import { Effect, Option, Random } from "effect"
import type { VirtualTime } from "./virtualTime.js"

export type Operation = TokenStore.TokenStoreError["operation"]

export interface Command {
  /** When it was sent, in milliseconds. */
  readonly at: number
  readonly operation: Operation
}

/** `fails`: at once, as a refused connection does. `hangs`: never responds. Its entries are lost. */
export interface Outage {
  readonly from: number
  readonly to: number
  readonly how: "fails" | "hangs"
}

export interface Options {
  /** The commands that it executes in a second, one after the other. Without it, any number at once. */
  readonly capacity: number | undefined
  readonly outage: Outage | undefined
}

/** The bounds of the round trip in milliseconds, which is random for each command. */
export const shortestWay = 0.3
export const longestWay = 1

export const make = ({ capacity, outage }: Options, time: VirtualTime) => {
  const commands: Array<Command> = []
  let memory = Effect.runSync(TokenStore.makeMemory)
  let isEmptied = false
  let busyUntil = 0

  const operate = <A>(
    operation: Operation,
    run: (memory: TokenStore.Service) => Effect.Effect<A, TokenStore.TokenStoreError>
  ): Effect.Effect<A, TokenStore.TokenStoreError> =>
    Effect.gen(function*() {
      const sent = time.now()
      if (outage !== undefined && sent >= outage.from && sent < outage.to) {
        return outage.how === "hangs"
          ? yield* Effect.never
          : yield* new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
      }
      if (outage !== undefined && sent >= outage.to && !isEmptied) {
        memory = Effect.runSync(TokenStore.makeMemory)
        isEmptied = true
      }
      commands.push({ at: sent, operation })
      const way = shortestWay + (longestWay - shortestWay) * (yield* Random.next)
      if (capacity === undefined) yield* Effect.sleep(way)
      else {
        // In the order of arrival, also when the caller no longer waits for the response.
        busyUntil = Math.max(busyUntil, sent + way / 2) + 1000 / capacity
        yield* Effect.sleep(busyUntil - sent + way / 2)
      }
      return yield* run(memory)
    })

  const service = TokenStore.TokenStore.of({
    get: (key) => operate("get", (memory) => memory.get(key)),
    put: (key, entry, life) => operate("put", (memory) => memory.put(key, entry, life)),
    remove: (key, entry) => operate("remove", (memory) => memory.remove(key, entry)),
    lease: (key, duration) =>
      Effect.map(
        operate("lease", (memory) => memory.lease(key, duration)),
        Option.map(({ extend, release }) => ({
          extend: operate("extend", () => extend),
          release: operate("release", () => release)
        }))
      )
  })
  return { commands, service }
}
