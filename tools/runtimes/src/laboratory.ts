/** The laboratory: an emulator for each check, controlled with `fetch`. On Node and loopback only. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { json } from "node:stream/consumers"
import { Emulator, type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Effect, Exit, Option, Redacted, Scope } from "effect"

export interface Setup {
  readonly tls?: boolean | undefined
  /** In milliseconds. Default: an hour. */
  readonly tokenLife?: number | undefined
}

/** All but the first are for a started emulator. */
export type Order =
  | { readonly name: "start" } & Setup
  | { readonly name: "view" | "revoke" | "stop"; readonly id: number }
  | {
    readonly name: "fail"
    readonly id: number
    readonly scenario: Scenario.Name
    readonly times: number | undefined
  }

const running: Array<
  { readonly emulator: Emulator.Service; readonly scope: Scope.CloseableScope }
> = []

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
      clientSecret: Redacted.value(clientSecret),
      ca: Option.getOrUndefined(emulator.ca)
    }
  })

export type Started = Effect.Effect.Success<ReturnType<typeof start>>

/** A request as the emulator received it. Its secrets are invented. */
const seen = (
  { authorization, body, headers, kind, status }: RecordedRequest.RecordedRequest
) => ({
  kind,
  status: Option.getOrNull(status),
  contentType: headers["content-type"],
  authorized: Option.isSome(authorization),
  body: Redacted.value(body)
})

const view = (emulator: Emulator.Service) =>
  Effect.all({
    requests: Effect.map(emulator.requests, Arr.map(seen)),
    elsewhere: Effect.map(emulator.elsewhere.requests, Arr.map(seen)),
    tokens: Effect.map(emulator.tokens, Arr.map(({ value }) => Redacted.value(value)))
  })

export type View = Effect.Effect.Success<ReturnType<typeof view>>

const perform = (order: Order): Effect.Effect<unknown, unknown> => {
  if (order.name === "start") return start(order)
  const { emulator, scope } = running[order.id] ?? { emulator: undefined, scope: undefined }
  if (emulator === undefined) return Effect.dieMessage(`There is no emulator ${order.id}.`)
  if (order.name === "fail") {
    const { scenario, times } = order
    const steps = Arr.ensure(Scenario.get(scenario))
    return emulator.fail(
      times === undefined ? steps : steps.map((step) => ({ ...step, times }))
    )
  }
  if (order.name === "view") return view(emulator)
  return order.name === "revoke" ? emulator.revoke() : Scope.close(scope, Exit.void)
}

const server = createServer((request, response) => {
  json(request).then((order) => Effect.runPromise(perform(order as Order))).then(
    (result) => response.end(JSON.stringify(result ?? null)),
    (error: unknown) => {
      console.error(error)
      response.writeHead(500).end()
    }
  )
})

await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

export const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
