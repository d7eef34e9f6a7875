/** A process that is a worker on token stores in folders. */
import { randomUUID } from "node:crypto"
import { existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenStore from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as NodeStoreAuth from "@store-api/platform-node/NodeStoreAuth"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { serve } from "../support/serve.js"

export type Order =
  & { readonly folder: string }
  & (
    /** Returns the number of entries that the worker removed. */
    | { readonly name: "remove"; readonly keys: ReadonlyArray<string>; readonly entry: string }
    /** Returns 1 if the worker got the lease. */
    | { readonly name: "lease"; readonly key: string; readonly millis: number }
    /** Gets a token with a new provider that shares it through the store. Returns 1. */
    | { readonly name: "acquire"; readonly url: string; readonly clientId: string; readonly lease: number }
    /** Never ends. */
    | { readonly name: "putForEver"; readonly key: string }
    /** Removes expired files until the file `until` exists. Returns how often. */
    | { readonly name: "removeExpired"; readonly until: string }
    /** Uses a key of its own `times` times. Returns how often it lost an entry or a lease. */
    | { readonly name: "comeAndGo"; readonly key: string; readonly times: number }
    /** Returns how many reads returned an entry that no worker put. */
    | { readonly name: "putAndGet"; readonly key: string; readonly times: number }
    /** Returns how often another worker held the lease too. The file exists while a worker holds it. */
    | { readonly name: "workAlone"; readonly key: string; readonly file: string; readonly times: number }
  )

/** Long, so that a read could return only a part of it. Both ends name the worker and the entry. */
const entryOf = (worker: string, n: number) => `${worker}:${n} ${"x".repeat(32 * 1024)} ${worker}:${n}`

const whole = /^(\S+) x{32768} \1$/

const perform = (order: Order): Effect.Effect<number, TokenStore.TokenStoreError> =>
  Effect.gen(function*() {
    const own = join(order.folder, "store-api-v1")
    const worker = randomUUID()
    const store = yield* FileTokenStore.make({ folder: order.folder })
    switch (order.name) {
      case "remove": {
        const removed = yield* Effect.forEach(order.keys, (key) => store.remove(key, order.entry))
        return removed.filter((was) => was).length
      }
      case "lease":
        return Option.isSome(yield* store.lease(order.key, order.millis)) ? 1 : 0
      case "acquire": {
        const { clientId, lease, url } = order
        const storeAuth = NodeStoreAuth.layerShared({
          authUrl: url,
          apiUrl: url,
          clientId,
          clientSecret: Redacted.make("an-invented-secret"),
          shared: { lease }
        })
        yield* AccessTokenProvider.AccessTokenProvider.pipe(
          Effect.flatMap(({ get }) => get),
          Effect.provide(Layer.provide(storeAuth, Layer.succeed(TokenStore.TokenStore, store))),
          Effect.orDie
        )
        return 1
      }
      case "putForEver":
        for (let n = 0; true; n++) {
          yield* store.put(order.key, entryOf(worker, n), "1 hour")
          const lease = yield* store.lease(order.key, 50)
          if (Option.isSome(lease)) yield* lease.value.release
        }
      case "removeExpired": {
        let times = 0
        for (; !existsSync(order.until); times++) {
          // Makes all files old. The valid ones must not be removed.
          for (const name of readdirSync(own)) {
            if (!name.endsWith(".part")) yield* Effect.ignore(Effect.try(() => utimesSync(join(own, name), 0, 0)))
          }
          yield* store.put(`remover ${worker}`, "entry", "1 hour")
        }
        return times
      }
      case "comeAndGo": {
        let lost = 0
        for (let n = 0; n < order.times; n++) {
          const entry = entryOf(worker, n)
          yield* store.put(order.key, entry, "1 hour")
          if (!Option.contains(yield* store.get(order.key), entry)) lost++
          const lease = yield* store.lease(order.key, "1 hour")
          if (!(yield* store.remove(order.key, entry))) lost++
          if (Option.isNone(lease)) lost++
          else {
            if (!(yield* lease.value.extend)) lost++
            yield* lease.value.release
          }
        }
        return lost
      }
      case "putAndGet": {
        let broken = 0
        for (let n = 0; n < order.times; n++) {
          yield* store.put(order.key, entryOf(worker, n), "1 hour")
          const found = yield* store.get(order.key)
          if (!Option.exists(found, (entry) => whole.test(entry))) broken++
        }
        return broken
      }
      case "workAlone": {
        let together = 0
        for (let done = 0; done < order.times;) {
          const lease = yield* store.lease(order.key, "1 hour")
          if (Option.isNone(lease)) continue
          if (existsSync(order.file)) together++
          writeFileSync(order.file, "")
          yield* Effect.sleep(2)
          if (!(yield* lease.value.extend)) together++
          rmSync(order.file, { force: true })
          yield* lease.value.release
          done++
        }
        return together
      }
    }
  }).pipe(Effect.provide(NodeContext.layer))

serve(perform)
