/**
 * The laboratory's process: performs the orders of `Check.ts`, on Node and loopback only. Prints its URL. Exits when
 * its stdin ends, so that no process remains.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { Emulator, type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Effect, Exit, Option, Redacted, Scope } from "effect"
import type { Order } from "./Check.js"

interface Running {
  readonly emulator: Emulator.Service
  readonly scope: Scope.CloseableScope
}

const running: Array<Running> = []

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

const start = (tls: boolean, tokenLife: number | undefined) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const emulator = yield* Scope.extend(Emulator.make({ tls, tokenLife }), scope)
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
  Effect.gen(function*() {
    return {
      requests: (yield* emulator.requests).map(seen),
      elsewhere: (yield* emulator.elsewhere.requests).map(seen),
      tokens: (yield* emulator.tokens).map(({ value }) => Redacted.value(value))
    }
  })

const fail = (emulator: Emulator.Service, scenario: string, times: number | undefined) =>
  Effect.suspend(() => {
    const name = Scenario.names.find((name) => name === scenario)
    if (name === undefined) return Effect.dieMessage(`There is no scenario ${scenario}.`)
    const steps = Arr.ensure(Scenario.get(name))
    return emulator.fail(times === undefined ? steps : steps.map((step) => ({ ...step, times })))
  })

const perform = (order: Order): Effect.Effect<unknown, unknown> => {
  if (order.name === "start") return start(order.tls, order.tokenLife)
  const found = running[order.id]
  if (found === undefined) return Effect.dieMessage(`There is no emulator ${order.id}.`)
  switch (order.name) {
    case "view":
      return view(found.emulator)
    case "revoke":
      return found.emulator.revoke()
    case "fail":
      return fail(found.emulator, order.scenario, order.times)
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
