/** Every option refuses wrong values with a `ConfigurationError` that names it and shows no value. */
import { SqlClient } from "@effect/sql"
import { SqlTokenStore } from "@store-api/sql"
import { test } from "@store-api/testing/test"
import { isRefused, notA, untyped, type Wrong } from "@store-api/testing/wrongOptions"
import { Effect, Layer } from "effect"

const wrong: Wrong<SqlTokenStore.Options> = {
  table: [...notA.text, ["tokens"], "", "a canary", "a.b.c", "a;DROP TABLE canary"]
}

/** The options are checked before a client is built or used. */
const unused = Layer.effect(SqlClient.SqlClient, Effect.dieMessage("the client is not needed"))

/** Ways to pass the same options. */
const buildWith = (options: never) =>
  [
    SqlTokenStore.make(options).pipe(Effect.provideService(SqlClient.SqlClient, untyped({}))),
    Effect.scoped(Layer.build(SqlTokenStore.layerLazy(unused, options)))
  ] as const

test.live.each(Object.entries(wrong))("a wrong %s is refused", function*([name, values]) {
  for (const value of values) {
    for (const build of buildWith(untyped({ [name]: value }))) {
      yield* isRefused(build, `SqlTokenStore.${name}`, value)
    }
  }
})

test.live("options that are not an object are refused", function*() {
  for (const options of notA.object) {
    for (const build of buildWith(untyped(options))) {
      yield* isRefused(build, "SqlTokenStore", options)
    }
  }
})
