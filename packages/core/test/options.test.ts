/**
 * Every option of the layers and modules refuses wrong values when it is built: with a `ConfigurationError` that names
 * the option and shows no value, before any request, and never with a defect.
 */
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  SharedTokenSource,
  StoreAuth,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { shows } from "@store-api/testing/renderings"
import { propEffect, test } from "@store-api/testing/test"
import {
  anyWrongDuration,
  isRefused,
  notA,
  notADuration,
  untyped,
  type Wrong
} from "@store-api/testing/wrongOptions"
import { Duration, Effect, Layer, Logger, Redacted, Ref } from "effect"
import * as FakeClient from "./support/fakeClient.js"
import { drive, endpoint, member } from "./support/fleet.js"

const urls: ReadonlyArray<unknown> = [
  ...notA.text,
  undefined,
  "",
  " ",
  "canary",
  "http://canary.example",
  "ftp://store.example",
  "https://:canary@store.example",
  "https://store.example?canary",
  "https://store.example#canary",
  { href: 5 },
  Object.create(null)
]

const positiveDurations = [...notADuration, 0, Duration.zero, "0 seconds"]

const ofStore = {
  authUrl: urls,
  apiUrl: urls,
  clientId: [...notA.text, undefined, Redacted.make("demo-client")],
  clientSecret: [...notA.secret, undefined, "a plain canary", Redacted.make(undefined)],
  credentials: [
    ...notA.object,
    ClientCredentials.make({ clientId: "a", clientSecret: Redacted.make("canary") })
  ],
  allowInsecure: notA.boolean,
  transformClient: [...notA.function, () => undefined],
  endpoint: [...notA.object, Duration.seconds(1)],
  provider: [...notA.object, Duration.seconds(1)],
  client: [...notA.object, Duration.seconds(1)],
  shared: [...notA.object, Duration.seconds(1)]
} satisfies Wrong<StoreAuth.SecretOptions & StoreAuth.Sharing>

type Part<Name extends keyof typeof ofStore> = NonNullable<
  (StoreAuth.SecretOptions & StoreAuth.Sharing)[Name]
>

const ofEndpoint: Wrong<Part<"endpoint">> = {
  path: [...notA.text, "canary path", "https://canary.example/token", "token#canary"],
  request: [...notA.object, {}, () => "a canary"],
  maxLifetime: positiveDurations,
  attemptTimeout: positiveDurations,
  deadline: positiveDurations,
  maxResponseBytes: [...notA.number, 0, -1, 1.5, Infinity, 2 ** 53]
}

const ofProvider: Wrong<Part<"provider">> = {
  refreshAhead: notADuration,
  leeway: notADuration,
  cooldown: [...notA.object, Duration.seconds(1)]
}

const ofCooldown: Wrong<NonNullable<Part<"provider">["cooldown"]>> = {
  base: notADuration,
  max: notADuration
}

const ofClient: Wrong<Part<"client">> = {
  trustedOrigins: [
    ...notA.list,
    "https://canary.example",
    ["https://store.example/canary"],
    ...urls.map((url) => [url])
  ],
  header: notA.object,
  retryUnauthorized: notA.boolean
}

const ofHeader: Wrong<NonNullable<Part<"client">["header"]>> = {
  name: [...notA.text, undefined, "", "x canary"],
  format: notA.function
}

const ofSharing: Wrong<Part<"shared">> = {
  lease: notADuration,
  maxWait: notADuration,
  storeTimeout: notADuration,
  sealingKey: [...notA.secret, Redacted.make("")]
}

/** By the names in errors. */
const wrong: Readonly<Record<string, ReadonlyArray<unknown>>> = Object.fromEntries(
  Object.entries({
    "": ofStore,
    "endpoint.": ofEndpoint,
    "provider.": ofProvider,
    "provider.cooldown.": ofCooldown,
    "client.": ofClient,
    "client.header.": ofHeader,
    "shared.": ofSharing
  }).flatMap(([part, options]) =>
    Object.entries(options).map(([name, values]) => [part + name, values])
  )
)

const durations = Object.keys(wrong).filter((option) => wrong[option]?.includes("1 secnd"))

const valid = {
  authUrl: "https://auth.store.example",
  apiUrl: "https://api.store.example",
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret"),
  client: { header: { name: "x-token" } }
}

/** A copy of options with another value at a path. */
const withValue = (
  options: object,
  [name = "", ...rest]: ReadonlyArray<string>,
  value: unknown
): object => ({
  ...options,
  [name]: rest.length === 0
    ? value
    : withValue({ ...Reflect.get(options, name) as object | undefined }, rest, value)
})

type Build = Effect.Effect<unknown, unknown>

/** Checks that an effect fails before it sends a request. */
const isRefusedEarly = (
  build: (client: FakeClient.FakeClient) => Build,
  option: string,
  value: unknown
) =>
  Effect.suspend(() => {
    const client = FakeClient.make(FakeClient.token)
    return Effect.map(isRefused(build(client), option, value), () =>
      assert.lengthOf(client.times, 0))
  })

const built = <A, E>(layer: Layer.Layer<A, E>): Build => Effect.scoped(Layer.build(layer))

const shared = (options: unknown) => (client: FakeClient.FakeClient): Build =>
  built(
    Layer.provide(Layer.suspend(() => StoreAuth.layerShared(untyped(options))), [
      client.layer,
      TokenStore.layerMemory
    ])
  )

describe("a layer fails with a wrong value", () => {
  test.each(Object.entries(wrong))(
    "a layer refuses a wrong value of the option %s",
    function*([option, values]) {
      for (const value of values) {
        yield* isRefusedEarly(
          shared(withValue(valid, option.split("."), value)),
          option,
          value
        )
      }
    }
  )

  propEffect(
    "a layer refuses any wrong duration",
    [anyWrongDuration],
    ([duration]) =>
      Effect.forEach(
        durations,
        (option) =>
          isRefusedEarly(
            shared(withValue(valid, option.split("."), duration)),
            option,
            duration
          ),
        { discard: true }
      )
  )

  test("a layer refuses options that are not a record", function*() {
    for (const options of [undefined, ...notA.object]) {
      yield* isRefusedEarly(shared(options), "options", options)
    }
  })
})

const source = TokenSource.layer(
  () =>
    Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })),
  Effect.succeed({
    name: ["a"],
    secret: Redacted.make("an invented secret"),
    maxLifetime: "60 minutes"
  })
)

const provider = Layer.provide(AccessTokenProvider.layer(), source)

/** Other ways to pass the same options. */
const ways: Readonly<
  Record<string, (options: never, client: FakeClient.FakeClient) => Build>
> = {
  "StoreAuth.layer": (options, { layer }) =>
    built(Layer.provide(StoreAuth.layer(options), layer)),
  "StoreAuth.make": (options, { layer }) =>
    Effect.scoped(Effect.provide(StoreAuth.make(options), layer)),
  "StoreAuth.layerFromSource": (options, { layer }) =>
    built(Layer.provide(StoreAuth.layerFromSource(options), [layer, source])),
  "TokenEndpoint.make": (options, { layer }) =>
    Effect.provide(TokenEndpoint.make(options), layer),
  "AccessTokenProvider.make": (options) =>
    Effect.scoped(Effect.provide(AccessTokenProvider.make(options), source)),
  "AuthorizedHttpClient.make": (options, { layer }) =>
    Effect.provide(AuthorizedHttpClient.make(options), Layer.merge(layer, provider)),
  "AuthorizedHttpClient.layerHttpClient": (options, { layer }) =>
    built(
      Layer.provide(
        AuthorizedHttpClient.layerHttpClient(options),
        Layer.merge(layer, provider)
      )
    ),
  "SharedTokenSource.make": (options) =>
    Effect.provide(
      SharedTokenSource.make(options),
      Layer.merge(source, TokenStore.layerMemory)
    )
}

const credentials = ClientCredentials.make({
  clientId: "a",
  clientSecret: Redacted.make("an invented secret")
})
const apiUrl = "https://api.store.example"

/** Options without the path of their part in front of the name, as a module takes them. */
const rows: ReadonlyArray<readonly [way: string, option: string, options: unknown]> = [
  ["StoreAuth.layer", "options", null],
  ["StoreAuth.layer", "shared", { ...valid, shared: 5 }],
  ["StoreAuth.layer", "clientSecret", { ...valid, clientSecret: undefined }],
  ["StoreAuth.layer", "clientId", { ...valid, clientId: undefined }],
  ["StoreAuth.layer", "clientId", { ...valid, clientId: undefined, clientSecret: undefined }],
  ["StoreAuth.layer", "credentials", { ...valid, clientId: undefined, credentials }],
  ["StoreAuth.make", "options", undefined],
  ["StoreAuth.make", "clientSecret", { ...valid, clientSecret: "a plain canary" }],
  ["StoreAuth.layerFromSource", "options", "a canary"],
  ["StoreAuth.layerFromSource", "apiUrl", {}],
  ["StoreAuth.layerFromSource", "provider.leeway", { apiUrl, provider: { leeway: -1 } }],
  ["TokenEndpoint.make", "endpoint", undefined],
  ["TokenEndpoint.make", "authUrl", {}],
  ["TokenEndpoint.make", "credentials", { authUrl: valid.authUrl }],
  ["TokenEndpoint.make", "credentials", {
    authUrl: valid.authUrl,
    credentials: { clientId: "canary" }
  }],
  ["TokenEndpoint.make", "endpoint.deadline", {
    authUrl: valid.authUrl,
    credentials,
    deadline: NaN
  }],
  ["AccessTokenProvider.make", "provider", "30 seconds"],
  ["AccessTokenProvider.make", "provider.cooldown", { cooldown: "30 seconds" }],
  ["AuthorizedHttpClient.make", "client", undefined],
  ["AuthorizedHttpClient.make", "apiUrl", {}],
  ["AuthorizedHttpClient.make", "client.header.name", {
    apiUrl,
    header: { format: () => "a canary" }
  }],
  ["AuthorizedHttpClient.layerHttpClient", "client.retryUnauthorized", {
    apiUrl,
    retryUnauthorized: "no"
  }],
  ["SharedTokenSource.make", "shared", 5],
  ["SharedTokenSource.make", "provider.leeway", { leeway: -1 }],
  ["SharedTokenSource.make", "shared.lease", { lease: -1 }]
]

test.each(rows)(
  "%s refuses a wrong value of the option %s",
  function*([way, option, options]) {
    const build = ways[way]
    assert.isDefined(build)
    yield* isRefusedEarly(
      (client) => Effect.suspend(() => build(untyped(options), client)),
      option,
      options
    )
  }
)

test("control: the other options of these tests are valid", function*() {
  for (const options of [valid, { ...valid, client: {} }]) {
    yield* shared(options)(FakeClient.make(FakeClient.token))
  }
})

test("ClientCredentials.make fails with a CredentialsError that names the field", function*() {
  const refused = (options: unknown) =>
    Effect.map(
      Effect.flip(Effect.suspend(() => ClientCredentials.make(untyped(options)))),
      ({ _tag, field, reason }) => [_tag, field, reason]
    )
  const clientId = "demo-client"
  const plain = "must be wrapped with Redacted.make"
  deepStrictEqual(yield* refused(undefined), ["CredentialsError", "clientId", "is missing"])
  deepStrictEqual(yield* refused({ clientId: 5 }), [
    "CredentialsError",
    "clientId",
    "must be a text"
  ])
  deepStrictEqual(yield* refused({ clientId }), [
    "CredentialsError",
    "clientSecret",
    "is missing"
  ])
  deepStrictEqual(yield* refused({ clientId, clientSecret: "canary" }), [
    "CredentialsError",
    "clientSecret",
    plain
  ])
})

/** A source whose purpose is given by JavaScript. */
const ofPurpose = (purpose: unknown) => {
  const acquire = () =>
    FakeClient.acquire(FakeClient.make(FakeClient.token)).pipe(Effect.orDie)
  return Effect.map(TokenStore.makeMemory, (store) => ({
    store,
    made: SharedTokenSource.make().pipe(
      Effect.provideService(
        TokenSource.TokenSource,
        TokenSource.make(acquire, untyped(purpose))
      ),
      Effect.provideService(TokenStore.TokenStore, store)
    )
  }))
}

test("a source that is written without the field purpose cannot be shared", function*() {
  const { acquire } = TokenSource.make(() => Effect.die("not asked"))
  const made = SharedTokenSource.make().pipe(
    Effect.provideService(TokenSource.TokenSource, untyped({ acquire })),
    Effect.provideServiceEffect(TokenStore.TokenStore, TokenStore.makeMemory)
  )
  yield* isRefused(made, "TokenSource.purpose", "none")
})

test("a purpose of a source that is not an Effect fails", function*() {
  for (const purpose of [5, "a canary", {}, [], () => "a canary"]) {
    const { made } = yield* ofPurpose(purpose)
    yield* isRefused(made, "TokenSource.purpose", purpose)
  }
})

const purpose = {
  name: ["a"],
  secret: Redacted.make("an invented secret"),
  maxLifetime: "60 minutes"
}

test.each([
  [
    "TokenSource.purpose.name",
    [...notA.list, undefined, []].map((name) => ({ ...purpose, name }))
  ],
  [
    "TokenSource.purpose.secret",
    notA.secret.map((secret) => ({ ...purpose, secret }))
  ],
  [
    "TokenSource.purpose.maxLifetime",
    positiveDurations.map((maxLifetime) => ({ ...purpose, maxLifetime }))
  ]
])(
  "a source that returns a purpose with a wrong %s acquires tokens with a warning",
  function*([name, purposes]) {
    for (const wrong of [...purposes, undefined]) {
      const lines: Array<string> = []
      const { made } = yield* ofPurpose(Effect.succeed(wrong))
      const { acquire } = yield* made
      const logger = Logger.make(({ annotations, message }) => {
        lines.push(`${String(message)}: ${String(Object.fromEntries(annotations)["reason"])}`)
      })
      yield* Effect.provide(
        acquire(TokenSource.missing),
        Logger.replace(Logger.defaultLogger, logger)
      )
      assert.lengthOf(lines, 1)
      if (wrong === undefined) {
        assert.match(lines[0] ?? "", /^The purpose .* could not be read; .* is not shared/)
        continue
      }
      assert.match(
        lines[0] ?? "",
        new RegExp(`^The purpose .* is not shared: The option ${name} must be .*[.]$`)
      )
    }
  }
)

test("credentials of another type fail with a CredentialsError at each acquisition", function*() {
  for (
    const credentials of [undefined, null, 5, {}, { clientId: "a" }, {
      clientId: "a",
      clientSecret: "a canary"
    }]
  ) {
    const client = FakeClient.make(FakeClient.token)
    const error = yield* Effect.flip(
      FakeClient.acquire(client, { credentials: Effect.succeed(untyped(credentials)) })
    )
    assert.strictEqual(error._tag, "CredentialsError", inspect(credentials))
    assert.isFalse(shows(error, "canary"))
    assert.lengthOf(client.times, 0)
  }
})

test.each([[0, 100], [5000.5, 5001], [Infinity, 3_600_000]])(
  "a lease of %s milliseconds takes %i milliseconds",
  function*([lease, expected]) {
    const leases = yield* Ref.make<ReadonlyArray<number>>([])
    const { source } = yield* endpoint()
    const memory = yield* TokenStore.makeMemory
    const store = TokenStore.TokenStore.of({
      ...memory,
      lease: (key, duration) =>
        Effect.zipRight(
          Ref.update(leases, (all) => [...all, Duration.toMillis(duration)]),
          memory.lease(key, duration)
        )
    })
    const { acquire } = yield* member(source, store, { lease })
    yield* (yield* drive(yield* Effect.fork(acquire(TokenSource.missing)))).exit
    deepStrictEqual(yield* Ref.get(leases), [expected])
  }
)

test.each([
  ["maxWait", { lease: () => Effect.succeedNone }],
  ["storeTimeout", { get: () => Effect.never }]
])("with a %s of zero, a process does not wait", function*([option, broken]) {
  const { requests, source } = yield* endpoint()
  const store = TokenStore.TokenStore.of({ ...yield* TokenStore.makeMemory, ...broken })
  const { acquire } = yield* member(source, store, { [option]: 0 })
  const { took } = yield* drive(yield* Effect.fork(acquire(TokenSource.missing)))
  deepStrictEqual([took, yield* requests], [0, 1])
})
