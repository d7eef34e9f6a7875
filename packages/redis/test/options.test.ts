/** Every option refuses wrong values with a `ConfigurationError` that names it and shows no value. */
import { RedisTokenStore } from "@store-api/redis"
import { test } from "@store-api/testing/test"
import { isRefused, notA, untyped, type Wrong } from "@store-api/testing/wrongOptions"
import { Effect, Layer, Redacted } from "effect"

const wrong: Wrong<RedisTokenStore.Options> = {
  url: [
    ...notA.secret,
    undefined,
    "redis://:canary@127.0.0.1",
    Redacted.make(undefined),
    Redacted.make("canary")
  ],
  prefix: notA.text
}

const valid = { url: Redacted.make("redis://127.0.0.1:1") }

test.live.each(Object.entries(wrong))("a wrong %s is refused", function*([name, values]) {
  for (const value of values) {
    const options = untyped({ ...valid, [name]: value })
    yield* isRefused(
      Effect.scoped(RedisTokenStore.make(options)),
      `RedisTokenStore.${name}`,
      value
    )
    yield* isRefused(
      Effect.scoped(Layer.build(RedisTokenStore.layer(options))),
      `RedisTokenStore.${name}`,
      value
    )
  }
})

test.live("options that are not an object are refused", function*() {
  for (const options of [undefined, ...notA.object]) {
    yield* isRefused(
      Effect.scoped(RedisTokenStore.make(untyped(options))),
      "RedisTokenStore",
      options
    )
  }
})
