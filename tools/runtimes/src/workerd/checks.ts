/** Checks for workerd only: how a worker keeps a token between requests. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import { Array as Arr, Effect } from "effect"
import { type Check, equal } from "../Check.js"
import { type Emulator, Laboratory } from "../Laboratory.js"

/** Sends a request to this worker and returns the status, which after a success is that of the API. */
const ask = (worker: string, way: "perRequest" | "shared", { clientId, clientSecret, url }: Emulator) =>
  Effect.provide(
    HttpClient.get(`${worker}/orders`, { urlParams: { way, url, clientId, clientSecret } }).pipe(
      Effect.flatMap((response) => Effect.as(response.text, response.status))
    ),
    FetchHttpClient.layer
  )

export const checks = (worker: string): ReadonlyArray<Check> => [
  {
    name: "workerd: a token is kept from request to request by a provider for each",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const one = ask(worker, "perRequest", emulator)
      yield* equal("one after the other", yield* Effect.all(Arr.replicate(one, 3)), [200, 200, 200])
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
      const atOnce = yield* Effect.all(Arr.replicate(one, 20), { concurrency: "unbounded" })
      yield* equal("20 at once", Arr.dedupe(atOnce), [200])
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  {
    name: "workerd: a kept token that is revoked, or expires, is replaced",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator({ tokenLife: "2000" }))
      const one = ask(worker, "perRequest", emulator)
      yield* one
      yield* emulator.revoke
      yield* equal("revoked", yield* one, 200)
      yield* equal("token requests", yield* emulator.tokenRequests, 2)
      yield* Effect.sleep("2100 millis")
      yield* equal("expired", yield* one, 200)
      yield* equal("token requests", yield* emulator.tokenRequests, 3)
    })
  },
  {
    name: "workerd: one provider for all requests fails those that wait for another's acquisition, as documented",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      yield* emulator.fail("token/slow-answer")
      const atOnce = yield* Effect.all(Arr.replicate(ask(worker, "shared", emulator), 2), { concurrency: "unbounded" })
      yield* equal("two at once", atOnce.sort(), [200, 500])
    })
  },
  {
    name: "workerd: … and delays the next caller when a request ends before the renewal that it started, as documented",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator({ tokenLife: "12000" }))
      const one = ask(worker, "shared", emulator)
      yield* equal("the first", yield* one, 200)
      yield* emulator.fail("token/slow-answer")
      // 2.2 s before the end: renewed in the background, from 2.4 s at the latest; no caller waits until 0.6 s.
      yield* Effect.sleep("9800 millis")
      yield* equal("the one that starts the renewal", yield* one, 200)
      yield* Effect.sleep("2500 millis")
      // The renewal never ends. The first caller without a valid token gives it up after 10 s and acquires a token
      // itself.
      yield* equal("the others", yield* Effect.all([one, one]), [200, 200])
      yield* equal("token requests", yield* emulator.tokenRequests, 3)
    })
  }
]
