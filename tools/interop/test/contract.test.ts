/** What every server must do with the library, also under load. */
import { assert, describe } from "@effect/vitest"
import { type AccessToken, type AccessTokenError, TokenRequest } from "@store-api/core"
import { shared } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import {
  DateTime,
  Duration,
  Effect,
  Either,
  FastCheck as fc,
  Option,
  Record,
  Redacted
} from "effect"
import { isLeftOut } from "../src/Program.js"
import * as servers from "../src/servers.js"
import {
  assertHidden,
  assertRejected,
  call,
  callApi,
  type Client,
  clientOf,
  requestToken,
  signedRequest
} from "./support.js"

type Running = servers.Running

/** Fields of a token request. */
type Fields = Readonly<Record<string, string>>

const secondsOf = ({ acquiredAt, expiresAt }: AccessToken.AccessToken) =>
  Duration.toSeconds(DateTime.distanceDuration(acquiredAt, expiresAt))

type Refusal = Partial<AccessTokenError.TokenRefusedError>
const refused = { _tag: "TokenRefusedError" } as const
const invalidClient: Refusal = {
  ...refused,
  reason: "InvalidClient",
  httpStatus: 401,
  code: "invalid_client"
}
const badRequest: Refusal = { ...invalidClient, httpStatus: 400 }
const withoutCode: Refusal = { ...refused, reason: "Other", httpStatus: 403 }

const assertRefused = (error: object, refusal: Refusal): void => {
  assert.deepInclude(error, refusal)
  assert.strictEqual("code" in error, "code" in refusal, "whether there is a code")
}

/** A way to request tokens. */
interface Way {
  readonly name: string
  /** The error for a wrong secret or an unknown client. */
  readonly refusal: Refusal
  /** What it sends besides the credentials. */
  readonly fields: Fields
  readonly request: (running: Running) => TokenRequest.TokenRequest
  readonly client: servers.Credentials
  readonly wrongSecret: Redacted.Redacted
}

const way = (name: string, request: (fields: Fields) => TokenRequest.TokenRequest) =>
(
  fields: Fields = {},
  refusal = invalidClient
): Way => ({
  name: [name, ...Object.keys(fields)].join(", "),
  refusal,
  fields,
  request: () => request(fields),
  client: servers.credentials,
  wrongSecret: Redacted.make("another-invented-secret")
})

const post = way("post", TokenRequest.clientSecretPost)
const basic = way("Basic", TokenRequest.clientSecretBasic)
const specification = way("specification", () => TokenRequest.specification)
const signed: Way = {
  name: "private_key_jwt",
  refusal: invalidClient,
  fields: { scope: servers.scope },
  request: signedRequest,
  client: servers.signingClient,
  wrongSecret: servers.otherKey
}

interface Expected {
  readonly server: servers.AuthorizationServer
  readonly ways: ReadonlyArray<Way>
  /** Which credentials arrive. None if the server does not check them; such a server revokes nothing either. */
  readonly reads?: { readonly beyondAscii: boolean; readonly decodedBasic: boolean }
}

const { resource, scope } = servers

const all: ReadonlyArray<Expected> = [
  {
    server: servers.oidcProvider,
    reads: { beyondAscii: false, decodedBasic: true },
    ways: [post(), basic(), post({ resource, scope }), signed]
  },
  {
    server: servers.nodeOAuth2Server,
    reads: { beyondAscii: false, decodedBasic: false },
    // It responds with 401 only to credentials in a header, as RFC 6749 §5.2 allows.
    ways: [specification({}, badRequest), post({}, badRequest), basic()]
  },
  { server: servers.oauth2MockServer, ways: [post(), basic()] },
  {
    server: servers.djangoOAuthToolkit,
    reads: { beyondAscii: true, decodedBasic: true },
    ways: [post({ scope }), basic({ scope })]
  },
  {
    server: servers.glewlwyd,
    reads: { beyondAscii: true, decodedBasic: false },
    ways: [post({ scope }, withoutCode), basic({ scope }, withoutCode)]
  }
]

/** All printable characters of ASCII. */
const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))

const character = fc.constantFrom(...printable, ..."%+:%+:")
const text = fc.array(character, { minLength: 1, maxLength: 40 }).map((all) => all.join(""))

/** Ids and secrets that are encoded on their way. */
const encodedClients = [
  servers.credentialsOf("id: with+every%20char", printable),
  servers.credentialsOf("id-of-basic", printable.replace(/[%+]/g, "")),
  servers.credentialsOf("id-of-umlauts", "Schlüssel für €, 鍵 und 🔑"),
  ...fc.sample(fc.tuple(text, text), 20).map(([id, secret], index) =>
    servers.credentialsOf(`${index}${id}`, secret)
  )
]

/** How much the counts grow during an effect. */
const counted = <A, E, R>({ counts }: Running, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = { ...counts }
    const result = yield* effect
    return { result, ...Record.map(counts, (count, name) => count - before[name]) }
  })

/** The lifetime in seconds of the tokens that the tests share: long enough that nothing expires. */
const life = 600

const revokedUnderCallers = (running: Running, store: Client) =>
  Effect.gen(function*() {
    const callers = 32
    const token = Effect.map(store.provider.get, ({ value }) => Redacted.value(value))
    const revoked = yield* token
    let revokedAt = Infinity
    let calls = 0
    // Each caller stops after its third call after the revocation.
    const caller = Effect.gen(function*() {
      for (let left = 3; left > 0;) {
        const began = performance.now()
        assert.strictEqual(yield* call(store), 200)
        calls++
        if (began > revokedAt) left--
      }
    })
    const revoking = Effect.gen(function*() {
      while (calls < callers) yield* Effect.sleep("5 millis")
      yield* running.revoke(revoked)
      revokedAt = performance.now()
    })
    const together = [revoking, ...Array.from({ length: callers }, () => caller)]
    const during = yield* counted(running, Effect.all(together, { concurrency: "unbounded" }))
    assert.strictEqual(during.tokenRequests, 1)
    assert.isAtLeast(during.unauthorized, 1, "one caller got the 401")
    assert.strictEqual(during.calls, calls + during.unauthorized)
    yield* assertRejected(running, revoked)
    assert.notStrictEqual(yield* token, revoked)
  })

/** The lifetime of a token under load, in seconds. Short enough that several expire. */
const short = 3

const callers = 36

const leastCalls = 1000

/** Calls for at least four lifetimes, however fast the calls are. Fails if a call fails; any status is a success. */
const load = (stores: ReadonlyArray<Client>) =>
  Effect.gen(function*() {
    const statuses: Array<number> = []
    /** The lifetimes as reported, in seconds: some servers round the remaining lifetime down. */
    const lives: Array<number> = []
    const start = performance.now()
    const caller = (store: Client) =>
      Effect.gen(function*() {
        statuses.push(yield* call(store))
        lives.push(secondsOf(yield* store.provider.get))
        // The pause keeps the server busy, which shares its process with other tests, without overloading it.
        yield* Effect.sleep("400 millis")
      }).pipe(
        Effect.repeat({
          until: () =>
            statuses.length >= leastCalls && performance.now() - start >= 4000 * short
        })
      )
    // One after the other, so that their connections do not open all at once.
    const joining = Array.from({ length: callers / stores.length }, () => stores).flat()
      .map((store, index) => Effect.delay(caller(store), 50 * index))
    yield* Effect.all(joining, { concurrency: "unbounded" })
    return { statuses, lives, seconds: (performance.now() - start) / 1000 }
  })

for (const { reads, server: { name, program, start }, ways } of all) {
  describe.skipIf(program !== undefined && isLeftOut(program))(name, () => {
    const isReadable = ({ clientSecret }: servers.Credentials) =>
      reads?.beyondAscii === true || /^[\x20-\x7e]+$/.test(Redacted.value(clientSecret))
    const others = encodedClients.filter(isReadable)
    const started = shared(start(life, others))
    const open = (
      running: Running,
      { client: own, request }: Way,
      change: Partial<servers.Credentials> = {}
    ) => clientOf(running, { client: { ...own, ...change }, request: request(running) })

    for (const way of ways) {
      const { client: own, fields, name, refusal, wrongSecret } = way

      test.live(`${name}: grants a token as it says; a call with it goes through, without it or with another not`, function*() {
        const running = yield* started
        const store = yield* open(running, way)
        const calling = yield* counted(running, Effect.replicateEffect(call(store), 3))
        assert.deepStrictEqual(calling, {
          result: [200, 200, 200],
          calls: 3,
          tokenRequests: 1,
          unauthorized: 0
        })
        assert.strictEqual((yield* callApi(running)).status, 401)
        yield* assertRejected(running, "an-invented-token")

        const [held, sent] = [yield* store.provider.get, yield* requestToken(running, fields)]
        assert.deepStrictEqual([held.tokenType, sent.token_type.toLowerCase()], [
          "Bearer",
          "bearer"
        ])
        assert.deepStrictEqual([held.scope, sent.scope], [
          fields["scope"] ?? "",
          fields["scope"]
        ])
        // Some servers send the remaining lifetime of a token that was issued a moment before.
        assert.closeTo(secondsOf(held), life, 1)
        assert.closeTo(sent.expires_in, life, 1)
        // The specification's own fields, which no other server sends.
        for (
          const field of [
            held.applicationName,
            held.developerEmail,
            held.issuedAt,
            held.clientId
          ]
        ) {
          assert.isTrue(Option.isNone<unknown>(field))
        }
      })

      if (reads === undefined) continue

      test.live.each([
        { what: "a wrong secret", change: { clientSecret: wrongSecret } },
        { what: "an unknown client", change: { clientId: "no-such-client" } }
      ])(
        `${name}: $what is refused with a typed error that shows no secret`,
        function*({ change }) {
          const running = yield* started
          const caller = yield* open(running, way, change)
          const { calls, result: error, tokenRequests } = yield* counted(
            running,
            Effect.flip(call(caller))
          )
          assertRefused(error, refusal)
          assert.deepStrictEqual({ calls, tokenRequests }, { calls: 0, tokenRequests: 1 })
          assertHidden(error, [wrongSecret, own.clientSecret])
        }
      )

      test.live(`${name}: a token is revoked under many callers: none of them sees it, one more token request`, function*() {
        const running = yield* started
        yield* revokedUnderCallers(running, yield* open(running, way))
      })

      const isBasic = name.startsWith("Basic")
      if (!isBasic && !name.startsWith("post")) continue

      test.live(
        `${name}: any id and secret arrive unchanged, except by Basic at a server that does not decode it`,
        function*() {
          const running = yield* started
          for (const other of others) {
            const [id, secret] = [other.clientId, Redacted.value(other.clientSecret)]
            const isChanged = isBasic && !reads.decodedBasic &&
              (/[%+:]/.test(id) || /[%+]|[^\x20-\x7e]/.test(secret))
            const outcome = yield* Effect.either(
              (yield* open(running, way, other)).provider.get
            )
            assert.strictEqual(Either.isLeft(outcome), isChanged, JSON.stringify([id, secret]))
            if (Either.isLeft(outcome)) {
              const changedByFormDecoding = refusal.reason === "InvalidClient"
              assertRefused(outcome.left, { ...refusal, changedByFormDecoding })
            }
            const wrong = yield* open(running, way, {
              ...other,
              clientSecret: Redacted.make(`${secret}~`)
            })
            assertRefused(yield* Effect.flip(wrong.provider.get), refusal)
          }
        }
      )
    }

    test.live(
      `${callers} callers, at least ${leastCalls} calls, tokens of ${short} s: no call ends with a 401`,
      function*() {
        const running = yield* start(short)
        const first = yield* requestToken(running, ways[0]?.fields)
        const stores = yield* Effect.forEach(ways, (way) => open(running, way))
        const { calls, result, tokenRequests, unauthorized } = yield* counted(
          running,
          load(stores)
        )
        const { lives, seconds, statuses } = result
        // Only a call that takes twice the lifetime of a token can see two tokens expire.
        assert.deepStrictEqual(statuses.filter((status) => status !== 200), [])
        assert.strictEqual(
          calls,
          statuses.length + unauthorized,
          "a call is repeated after a 401, once"
        )
        assert.isTrue(lives.every((life) => life >= short - 1 && life <= short))
        const average = lives.reduce((sum, life) => sum + life, 0) / lives.length
        // By default, at most a quarter of the lifetime is left when a token is renewed.
        assert.isAtMost(
          tokenRequests,
          stores.length * (Math.ceil(seconds / (average * 0.75)) + 1)
        )
        assert.isAtLeast(
          tokenRequests,
          stores.length * Math.floor(seconds / short),
          "each token ended"
        )
        yield* assertRejected(running, first.access_token)
      },
      180_000
    )
  })
}
