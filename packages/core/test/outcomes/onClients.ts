/**
 * Declares the tests of the library against every scenario of the emulator, with the given HTTP clients. All scenarios
 * run concurrently before the tests. Each test checks the outcome of one.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Effect, Option } from "effect"
import type { Client } from "../support/clients.js"
import { watchUnhandled } from "../support/watchProcess.js"
import * as ApiRows from "./apiRows.js"
import { isDefect, type Observation } from "./observation.js"
import * as TokenRows from "./tokenRows.js"

interface All {
  readonly token: ReadonlyMap<string, TokenRows.Row>
  readonly api: ReadonlyMap<string, ApiRows.Row>
  readonly unhandled: ReadonlyArray<unknown>
}

/** Most runs of the token endpoint wait. Runs of the API send up to hundreds of requests. */
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

const rowOf = <A>(rows: ReadonlyMap<string, A>, key: string): A => {
  const row = rows.get(key)
  assert.isDefined(row)
  return row
}

export const onClients = (clients: ReadonlyArray<Client>): void => {
  const tokenRuns = clients.flatMap((client) =>
    TokenRows.names.map((name) => ({ key: `${name}, ${client.name}`, name, client }))
  )
  const apiRuns = clients.flatMap((client) =>
    ApiRows.rows.map((row) => ({ key: `${row.scenario}, ${row.what}, ${client.name}`, row, client }))
  )
  const observations = Effect.gen(function*() {
    const unhandled = yield* watchUnhandled
    const token = yield* collect(tokenRuns, concurrency.token, ({ client, name }) => TokenRows.run(name, client))
    const api = yield* collect(apiRuns, concurrency.api, ({ client, row }) => ApiRows.run(row, client))
    return { token, api, unhandled: yield* unhandled }
  })

  describe("outcomes", () => {
    let all: All = { token: new Map(), api: new Map(), unhandled: [] }
    // `layer` of @effect/vitest would replace `it.effect` for every later file of the worker.
    beforeAll(async () => {
      all = await Effect.runPromise(Effect.scoped(observations))
    }, 180_000)
    afterAll(() => console.log(summary(clients, all)))

    for (const { key, name } of tokenRuns) {
      it(`${key}: ${Scenario.all[name].expected}`, () => TokenRows.check(name, rowOf(all.token, key)))
    }
    for (const { client, key, row } of apiRuns) {
      it(`${key}: ${Scenario.all[row.scenario].expected}`, () => ApiRows.check(row, rowOf(all.api, key), client))
    }
    it("there is a row for each scenario of the API", () =>
      assert.sameMembers(
        [...new Set(ApiRows.rows.map(({ scenario }) => scenario))],
        Scenario.names.filter((name) => name.startsWith("api/"))
      ))
    it("no rejection and no exception was unhandled", () => deepStrictEqual(all.unhandled.map(String), []))
  })
}
