/**
 * The laboratory's process: performs the orders of `Check.ts`, on Node and loopback only. Prints its URL. Exits when
 * its stdin ends, so that no process remains.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { Emulator, type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Effect, Exit, Option, Redacted, Scope } from "effect"
import type { Setup } from "./Check.js"

/** All but the first are for a started emulator. */
export type Order =
  | { readonly name: "start" } & Setup
  | { readonly name: "view" | "revoke" | "stop"; readonly id: number }
  | { readonly name: "fail"; readonly id: number; readonly scenario: Scenario.Name; readonly times: number | undefined }

const running: Array<{ readonly emulator: Emulator.Service; readonly scope: Scope.CloseableScope }> = []

/** A request as the emulator received it. Its secrets are invented. */
const seen = ({ authorization, body, headers, kind, status }: RecordedRequest.RecordedRequest) => ({
  kind,
  status: Option.getOrNull(status),
  contentType: headers["content-type"],
  authorized: Option.isSome(authorization),
  body: Redacted.value(body)
})

/** A started emulator. */
export type Started = Effect.Effect.Success<ReturnType<typeof start>>

const start = (setup: Setup) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const emulator = yield* Scope.extend(Emulator.make(setup), scope)
    const { clientId, clientSecret } = Emulator.demoClient
    return {
      id: running.push({ emulator, scope }) - 1,
      url: emulator.url,
      elsewhere: emulator.elsewhere.url,
      clientId,
      clientSecret: Redacted.value(clientSecret)
    }
  })

/** The observable state of an emulator. */
export type View = Effect.Effect.Success<ReturnType<typeof view>>

const view = (emulator: Emulator.Service) =>
  Effect.all({
    requests: Effect.map(emulator.requests, Arr.map(seen)),
    elsewhere: Effect.map(emulator.elsewhere.requests, Arr.map(seen)),
    tokens: Effect.map(emulator.tokens, Arr.map(({ value }) => Redacted.value(value)))
  })

const perform = (order: Order): Effect.Effect<unknown, unknown> => {
  if (order.name === "start") return start(order)
  const found = running[order.id]
  if (found === undefined) return Effect.dieMessage(`There is no emulator ${order.id}.`)
  switch (order.name) {
    case "view":
      return view(found.emulator)
    case "revoke":
      return found.emulator.revoke()
    case "fail": {
      const { scenario, times } = order
      const steps = Arr.ensure(Scenario.get(scenario))
      return found.emulator.fail(times === undefined ? steps : steps.map((step) => ({ ...step, times })))
    }
    case "stop":
      return Scope.close(found.scope, Exit.void)
  }
}

const server = createServer((request, response) => {
  text(request).then((body) => Effect.runPromise(perform(JSON.parse(body) as Order))).then(
    (result) => response.end(JSON.stringify(result ?? null)),
    (error: unknown) => {
      console.error(error)
      response.writeHead(500).end()
    }
  )
})

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))

process.stdin.resume().once("close", () => process.exit())
