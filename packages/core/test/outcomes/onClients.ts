/**
 * Declares the tests of what the library makes of every scenario of the emulator, on the given HTTP clients. All scenarios
 * run concurrently before the tests; each test checks one of them.
 */
import { assert, describe, layer } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Console, Context, Effect, Layer, Option } from "effect"
import * as ApiRows from "./apiRows.js"
import type { Client } from "./clients.js"
import { isDefect, type Observation } from "./observation.js"
import * as TokenRows from "./tokenRows.js"
import * as Watch from "./watch.js"

interface All {
  readonly token: ReadonlyMap<string, TokenRows.Row>
  readonly api: ReadonlyMap<string, ApiRows.Row>
  readonly unhandled: ReadonlyArray<unknown>
}

class Observations extends Context.Tag("test/Observations")<Observations, All>() {}

/** Most runs of the first kind wait; those of the second send up to hundreds of requests. */
const concurrency = { token: 12, api: 2 }

const collect = <Run extends { readonly key: string }, A, E>(
  runs: ReadonlyArray<Run>,
  concurrency: number,
  observe: (run: Run) => Effect.Effect<A, E>
) =>
  Effect.map(
    Effect.forEach(runs, (run) => Effect.map(observe(run), (row) => [run.key, row] as const), { concurrency }),
    (rows) => new Map(rows)
  )

const summary = (clients: ReadonlyArray<Client>, { api, token, unhandled }: All) => {
  const rows: ReadonlyArray<Observation<unknown, unknown>> = [...token.values(), ...api.values()]
  const sum = (counts: ReadonlyArray<number>) => counts.reduce((total, count) => total + count, 0)
  return [
    `${Scenario.names.length} scenarios × ${clients.length} clients (${rows.length} runs)`,
    `hangs ${rows.filter(({ exit }) => Option.isNone(exit)).length}`,
    `defects ${rows.filter(({ exit }) => Option.exists(exit, isDefect)).length}`,
    `unhandled ${unhandled.length}`,
    `sockets left ${sum(rows.map(({ socketsLeft }) => socketsLeft))}`,
    `token requests at the other origin ${sum([...token.values()].map(({ elsewhere }) => elsewhere.length))}`,
    `access tokens at the other origin ${sum([...api.values()].map(ApiRows.withToken))}`
  ].join(", ")
}

const seen = <A>(rows: (all: All) => ReadonlyMap<string, A>, key: string) =>
  Effect.map(Observations, (all) => {
    const row = rows(all).get(key)
    assert.isDefined(row)
    return row
  })

export const onClients = (clients: ReadonlyArray<Client>): void => {
  const tokenRuns = clients.flatMap((client) =>
    TokenRows.names.map((name) => ({ key: `${name}, ${client.name}`, name, client }))
  )
  const apiRuns = clients.flatMap((client) =>
    ApiRows.rows.map((row) => ({ key: `${row.scenario}, ${row.what}, ${client.name}`, row, client }))
  )

  const ObservationsLive = Layer.scoped(
    Observations,
    Effect.gen(function*() {
      const watch = yield* Watch.make
      const token = yield* collect(tokenRuns, concurrency.token, ({ client, name }) => TokenRows.run(name, client))
      const api = yield* collect(apiRuns, concurrency.api, ({ client, row }) => ApiRows.run(row, client))
      return { token, api, unhandled: yield* watch.seen }
    }).pipe(
      Effect.tap((all) => Effect.addFinalizer(() => Console.log(summary(clients, all))))
    )
  )

  describe("outcomes", () => {
    layer(ObservationsLive, { excludeTestServices: true, timeout: "3 minutes" })((it) => {
      for (const { key, name } of tokenRuns) {
        it.scoped(`${key}: ${Scenario.all[name].expected}`, () =>
          Effect.map(seen(({ token }) => token, key), (row) => TokenRows.check(name, row)))
      }
      for (const { client, key, row } of apiRuns) {
        it.scoped(`${key}: ${Scenario.all[row.scenario].expected}`, () =>
          Effect.map(seen(({ api }) => api, key), (found) => ApiRows.check(row, found, client)))
      }
      it.scoped("there is a row for each scenario of the API", () =>
        Effect.sync(() =>
          assert.sameMembers(
            [...new Set(ApiRows.rows.map(({ scenario }) => scenario))],
            Scenario.names.filter((name) => name.startsWith("api/"))
          )
        ))
      it.scoped("nothing was left unhandled", () =>
        Effect.map(Observations, ({ unhandled }) => deepStrictEqual(unhandled.map(String), [])))
    })
  })
}
