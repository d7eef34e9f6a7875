import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Redacted, type Scope } from "effect"
import { inProcess, renewal, share, shop, tokens, until } from "./support/fleet.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const limit = 60_000

/** All that Redis is told from now on. */
const monitor = ({ port }: RedisServer): Effect.Effect<() => string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly end: () => void; readonly seen: () => string }>((resume) => {
        let seen = ""
        const socket = connect({ host: "127.0.0.1", port }, () => socket.write("MONITOR\r\n"))
        socket.on("data", (chunk: Buffer) => {
          if (seen === "") resume(Effect.succeed({ end: () => socket.destroy(), seen: () => seen }))
          seen += chunk.toString("latin1")
        })
      }),
      ({ end }) => Effect.sync(end)
    ),
    ({ seen }) => seen
  )

/** All that Redis holds. */
const held = ({ command }: RedisServer) =>
  Effect.gen(function*() {
    const keys = yield* command("KEYS", "*") as Effect.Effect<Array<string>>
    const values = yield* Effect.forEach(keys, (key) => command("GET", key))
    return [...keys, ...values].join("\n")
  })

/** In base64 a text looks different, depending on where it begins; what surrounds it is left out. */
const inBase64 = (text: string) =>
  [0, 1, 2].map((before) => {
    const end = Math.floor((before + text.length) / 3) * 3
    return Buffer.from(" ".repeat(before) + text).subarray(before === 0 ? 0 : 3, end).toString("base64")
  })

/** As it is, in hex of either case and in either base64. */
const forms = (text: string): ReadonlyArray<string> => {
  const hex = Buffer.from(text).toString("hex")
  const base64 = inBase64(text)
  const url = base64.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))
  return [text, hex, hex.toUpperCase(), ...base64, ...url]
}

const shows = (where: string, text: string) => forms(text).some((form) => where.includes(form))

describe.skipIf(isLeftOut)("what Redis holds and is told", () => {
  it.scopedLive("shows no token, no secret and no client id", () =>
    Effect.gen(function*() {
      const [redis, { asked, settings, tokens: allIssued }] = yield* Effect.all([redisServer(), shop()])
      const told = yield* monitor(redis)
      const members = yield* share(inProcess, 3, redis, settings)
      yield* tokens(members)
      yield* renewal(members, asked)
      const issued = (yield* allIssued).map(({ value }) => Redacted.value(value))
      assert.lengthOf(issued, 2)
      const secrets = [settings.clientId, settings.clientSecret, ...issued]
      const seen = `${yield* held(redis)}\n${told()}`
      for (const word of ["GET", "SET", "EVAL", ":lease"]) assert.include(seen.toUpperCase(), word.toUpperCase())
      deepStrictEqual(secrets.filter((secret) => shows(seen, secret)), [])
      assert.notInclude(seen, new URL(settings.authUrl).host)
    }), limit)

  it.scopedLive("control: what is put there unsealed is found, however it is written", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer()
      const secret = "an-invented~secret?of>31.letters"
      const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
      const written = [
        secret,
        Buffer.from(secret).toString("hex"),
        Buffer.from(secret).toString("hex").toUpperCase(),
        ...["", "1", "12"].flatMap((before) => {
          const bytes = Buffer.from(`${before}${secret} and so on`)
          return [bytes.toString("base64"), bytes.toString("base64url")]
        })
      ]
      for (const entry of written) {
        const told = yield* monitor(redis)
        yield* store.put("key", entry, "1 minute")
        assert.isTrue(shows(yield* held(redis), secret), entry)
        yield* until("it is told", Effect.sync(() => shows(told(), secret)))
        assert.isFalse(shows(yield* held(redis), "another-invented-secret"))
      }
    }), limit)
})
