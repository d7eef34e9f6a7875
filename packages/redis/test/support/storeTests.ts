/** Tests of a store on several servers, which a user of the server's configuration may use. */
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { assert, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Fiber, Option, Redacted } from "effect"
import { shared } from "../../../platform-node/test/utils.js"
import { listen } from "../../../platform-node/test/utils.js"
import { until } from "./fleet.js"
import type { Start } from "./topologies.js"

/** The users that docs/guides/redis.md recommends, as in the configuration of a server. */
export const documented = (right: string) => {
  const page = readFileSync(new URL("../../../../docs/guides/redis.md", import.meta.url), "utf8")
  const users = page.split("\n").filter((line) => line.startsWith("user store-api ") && line.includes(right))
  assert.isNotEmpty(users, right)
  return (users[0] ?? "").split(" ").slice(1)
}

export const user = "store-api:password@"

const key = "store-api-token-v1:0123456789abcdef"

const made = (url: string) => RedisTokenStore.make({ url: Redacted.make(url) })

/** Registers the tests with servers that they share. */
export const storeTests = (start: Start, acl: NonNullable<Parameters<Start>[0]>) => {
  const servers = shared(start({ ...acl, user }))

  it.scopedLive("performs each operation, even if the first host of the URL does not respond", () =>
    Effect.gen(function*() {
      const { url } = yield* servers
      // No server listens on port 1.
      const store = yield* made(url.replace(user, `${user}127.0.0.1:1,`))
      yield* store.put(key, "entry", "1 minute")
      deepStrictEqual(yield* store.get(key), Option.some("entry"))
      const lease = Option.getOrThrow(yield* store.lease(key, "1 minute"))
      assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
      assert.isTrue(yield* lease.extend)
      yield* lease.release
      assert.isTrue(yield* store.remove(key, "entry"))
    }))

  it.scopedLive("fails at once if the password is wrong", () =>
    Effect.gen(function*() {
      const { url } = yield* servers
      const store = yield* made(url.replace(user, "store-api:an-invented-other@"))
      assert.strictEqual((yield* Effect.flip(store.get(key))).reason, "WRONGPASS")
    }))

  // Sentinels would need the new password too.
  if (acl.sentinelAcl === undefined) {
    it.scopedLive("works again when a connection ends, whatever failed before", () =>
      Effect.gen(function*() {
        const { servers: all, url } = yield* servers
        const store = yield* made(url.replace(user, "store-api:an-invented-third@"))
        assert.strictEqual((yield* Effect.flip(store.get(key))).reason, "WRONGPASS")
        yield* Effect.forEach(all, ({ command }) => command("ACL", "SETUSER", "store-api", ">an-invented-third"))
        yield* until("the password is right", Effect.isSuccess(store.get(key)))
        yield* Effect.forEach(all, ({ command }) => command("CLIENT", "KILL", "USER", "store-api"))
        yield* store.get(key)
      }))
  }

  it.scopedLive("leaves no connection to a host that accepts it and does not respond", () =>
    Effect.gen(function*() {
      const { url } = yield* servers
      const silent = yield* listen(createServer((socket) => socket.resume()))
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* made(url.replace(user, `${user}127.0.0.1:${silent.port},`))
        for (let n = 0; silent.opened() === 0 && n < 20; n++) {
          yield* Effect.scoped(
            Effect.flatMap(made(url.replace(user, `${user}127.0.0.1:${silent.port},`)), (other) => other.get(key))
          )
        }
        yield* store.get(key)
      }))
      assert.isAbove(silent.opened(), 0)
      yield* until("no connection is left", Effect.sync(() => silent.open() === 0))
    }))

  it.scopedLive("leaves no connection when its scope closes, at any moment", () =>
    Effect.gen(function*() {
      const { servers: all, url } = yield* servers
      const connections = Effect.map(
        Effect.forEach(all, ({ command }) => command("CLIENT", "LIST")),
        (lists) => lists.map((list) => String(list).split("user=store-api").length - 1)
      )
      const total = Effect.map(connections, (counts) => counts.reduce((sum, count) => sum + count, 0))
      for (const pause of [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 13, 17, 21]) {
        const making = yield* Effect.fork(Effect.scoped(Effect.flatMap(made(url), (store) => store.get(key))))
        yield* pause === 0 ? Effect.yieldNow() : Effect.sleep(pause)
        yield* Fiber.interrupt(making)
      }
      const last = yield* made(url)
      yield* last.get(key)
      yield* until("the last connection is the only one", Effect.map(total, (count) => count === 1))
    }))
}
