/** A store on each kind of servers, as a user with the rights that docs/guides/several-instances.md recommends. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { shared } from "@store-api/testing/loopback"
import { until } from "@store-api/testing/network"
import {
  clientAt,
  cluster,
  documented,
  isLeftOut,
  sentinel,
  sharedRedis,
  single,
  user,
  works
} from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, Redacted } from "effect"

const key = "store-api-token-v1:0123456789abcdef"

const made = (url: string) => RedisTokenStore.make({ url: Redacted.make(url) })

const rights = documented("+pexpire")

const topologies = [
  { name: "one server", start: single, users: { acl: rights } },
  { name: "a cluster", start: cluster, users: { acl: documented("+asking") } },
  {
    name: "sentinels",
    start: sentinel,
    users: { acl: rights, sentinelAcl: documented("+sentinel") }
  }
]

for (const { name, start, users } of topologies) {
  describe.skipIf(isLeftOut)(`a store on ${name}`, () => {
    const started = shared(start({ ...users, user }))
    const several = name !== "one server"

    /** The URL of the servers, with this host before the others. */
    const after = (url: string, host: string) =>
      several ? url.replace(user, `${user}${host},`) : url

    test.live("a store performs each operation, even if the first host of the URL does not respond", function*() {
      const { url } = yield* started
      // No server listens on port 1.
      yield* works(yield* made(after(url, "127.0.0.1:1")), key)
    })

    // Sentinels would need the new password too.
    if (name !== "sentinels") {
      /** The store has this password before the servers have it. */
      const startedWithWrongPassword = Effect.gen(function*() {
        const { servers, url } = yield* started
        const store = yield* made(url.replace(user, "store-api:an-invented-third@"))
        const commandAll = (...command: readonly [string, ...ReadonlyArray<string>]) =>
          Effect.forEach(servers, (server) => server.command(...command))
        return { commandAll, store }
      })

      test.live("an operation fails at once if the password is wrong", function*() {
        const { store } = yield* startedWithWrongPassword
        assert.strictEqual((yield* Effect.flip(store.get(key))).reason, "WRONGPASS")
      })

      test.live("operations succeed again once the password is right", function*() {
        const { commandAll, store } = yield* startedWithWrongPassword
        yield* Effect.flip(store.get(key))
        yield* commandAll("ACL", "SETUSER", "store-api", ">an-invented-third")
        yield* until("the password is right", Effect.isSuccess(store.get(key)))
      })

      test.live("operations succeed again after the connection has ended", function*() {
        const { servers, url } = yield* started
        const store = yield* made(url)
        yield* store.get(key)
        yield* Effect.forEach(
          servers,
          ({ command }) => command("CLIENT", "KILL", "USER", "store-api")
        )
        // The client of one server connects again by itself.
        yield* several
          ? store.get(key)
          : until("it is connected again", Effect.isSuccess(store.get(key)))
      })
    }

    test.live("a store leaves no connection when its scope closes, at any moment", function*() {
      const { servers, url } = yield* started
      const connections = Effect.map(
        Effect.forEach(servers, ({ command }) => command("CLIENT", "LIST")),
        (lists) => lists.join("").split("user=store-api").length - 1
      )
      for (const pause of [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 13, 17, 21]) {
        const making = yield* Effect.fork(
          Effect.scoped(Effect.flatMap(made(url), (store) => store.get(key)))
        )
        yield* pause === 0 ? Effect.yieldNow() : Effect.sleep(pause)
        yield* Fiber.interrupt(making)
      }
      const last = yield* made(url)
      yield* last.get(key)
      yield* until(
        "the last connection is the only one",
        Effect.map(connections, (count) => count === 1)
      )
    })
  })
}

describe.skipIf(isLeftOut)("a store behind sentinels without users", () => {
  const servers = shared(sentinel())

  test.live("a store behind sentinels without users uses the database of the URL", function*() {
    const { primaryOf, url } = yield* servers
    const store = yield* made(`${url}/3`)
    yield* store.put("key", "entry", "1 minute")
    const primary = yield* primaryOf("key")
    assert.include(String(yield* primary.command("INFO", "keyspace")), "db3:keys=1")
    deepStrictEqual(yield* primary.command("KEYS", "*"), [])
  })
})

describe.skipIf(isLeftOut)(
  "the rights that docs/guides/several-instances.md recommends",
  () => {
    const emptyRedis = sharedRedis()

    /** Creates a user with these rights. Returns a client of the administrator, and the URL for the user. */
    const serverWith = ([name = "", ...rights]: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const { url } = yield* emptyRedis
        const administrator = yield* clientAt(url)
        yield* Effect.promise(() =>
          administrator.sendCommand(["ACL", "SETUSER", name, "reset", ...rights])
        )
        return { administrator, url: `${url.replace("redis://", `redis://${user}`)}/1` }
      })

    test.live("the recommended rights are enough in any database", function*() {
      yield* works(yield* made((yield* serverWith(rights)).url), key)
    })

    test.live("the recommended rights do not cover other keys", function*() {
      const store = yield* made((yield* serverWith(rights)).url)
      assert.strictEqual((yield* Effect.flip(store.get("another key"))).reason, "NOPERM")
    })

    test.live.each([
      "CLIENT LIST",
      "CLIENT PAUSE 1",
      "CLIENT KILL TYPE normal SKIPME yes",
      "KEYS *",
      "SCAN 0",
      "FLUSHALL",
      "CONFIG GET maxmemory",
      "ACL LIST"
    ])(
      "the recommended rights do not include %s, which the administrator can do",
      function*(command) {
        const { administrator, url } = yield* serverWith(rights)
        const user = yield* clientAt(url)
        const refusal = (client: typeof user) =>
          Effect.promise(() =>
            client.sendCommand(command.split(" ")).then(() => "none", String)
          )
        assert.include(yield* refusal(user), "NOPERM")
        assert.strictEqual(yield* refusal(administrator), "none")
      }
    )

    test.live.each([
      "+select",
      "+get",
      "+set",
      "+del",
      "+eval",
      "+pexpire",
      "+pttl",
      "~store-api-token-v1:*"
    ])(
      "the recommended rights are not enough without %s",
      function*(right) {
        const fewer = rights.filter((word) => word !== right)
        assert.lengthOf(fewer, rights.length - 1)
        const error = yield* Effect.flip(
          works(yield* made((yield* serverWith(fewer)).url), key)
        )
        assert.strictEqual((error as { readonly _tag?: string })._tag, "TokenStoreError")
      }
    )
  }
)
