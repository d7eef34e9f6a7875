/** Further checks for runtimes with the modules of Node: both modules with a client of their own. */
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { Effect } from "effect"
import { type Check, check, equal, holds, store } from "./Check.js"

const refused = ["connections", "ca", "cert", "key", "dispatcher"] as const

/** Bun replaces undici, so it cannot honour these options. */
const bun: ReadonlyArray<Check> = [
  check("options that need undici are refused", function*() {
    const { options } = yield* store()
    for (const name of refused) {
      // Any value, because only its presence counts.
      const http = { [name]: "a value" } as object
      const error = yield* Effect.flip(NodeStoreAuth.make({ ...options, http }))
      equal("the error", error._tag, "ConfigurationError")
      holds(`the sentence names ${name}`, error.message.includes(`http.${name} `))
    }
  })
]

export const checks: ReadonlyArray<Check> = [
  check("NodeStoreAuth sends a request with its defaults", function*() {
    const { emulator, options } = yield* store()
    const { client } = yield* NodeStoreAuth.make(options)
    const response = yield* client.get("/orders")
    yield* response.text
    equal("the status", response.status, 200)
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),
  check("PromiseStoreAuth sends a request with its defaults", function*() {
    const { emulator, options } = yield* store()
    const { dispose, fetch } = PromiseStoreAuth.make(options)
    const response = yield* Effect.promise(() => fetch("/orders"))
    yield* Effect.promise(() => response.text())
    equal("the status", response.status, 200)
    equal("token requests", yield* emulator.tokenRequests, 1)
    yield* Effect.promise(dispose)
  }),
  ..."Bun" in globalThis ? bun : []
]
