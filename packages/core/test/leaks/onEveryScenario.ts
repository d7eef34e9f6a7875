/** Declares the tests of one HTTP client: no output of any scenario contains the secret or a token. */
import { inspect } from "node:util"
import { HttpBody, HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenRequest,
  TokenSource
} from "@store-api/core"
import { Emulator, Fault, Scenario } from "@store-api/emulator"
import { failuresOf, httpReason } from "@store-api/testing/effectMajor"
import {
  type Canary,
  leaksInOutputs,
  secret as secretCanary,
  token as tokenCanary
} from "@store-api/testing/leaksIn"
import { type Output, renderDistinct, renderOuter } from "@store-api/testing/renderings"
import { needsKey } from "@store-api/testing/scenarios"
import { test } from "@store-api/testing/test"
import {
  Array as Arr,
  Effect,
  Exit,
  Layer,
  Metric,
  Redacted,
  Schema,
  type Scope
} from "effect"
import type { Client } from "../support/clients.js"
import { capture, watchConsole } from "../support/telemetry.js"

interface Journey {
  readonly canaries: ReadonlyArray<Canary>
  readonly outputs: ReadonlyArray<Output>
  /** `tag/reason` of each error that occurred. */
  readonly errors: ReadonlyArray<string>
  readonly apiStatuses: ReadonlyArray<number>
}

/** Short where a response never comes or is retried. Elsewhere a busy machine must not turn an error into a timeout. */
const limits = {
  short: { attemptTimeout: "400 millis", deadline: "700 millis", call: "1 second" },
  long: { attemptTimeout: "20 seconds", deadline: "20 seconds", call: "20 seconds" }
} as const

/** Uses the library against an emulator as an application does. Collects all that the application receives. */
const take = (
  client: Client,
  options: {
    readonly script: Fault.Script
    readonly wait: keyof typeof limits
    readonly tls?: boolean | undefined
    readonly request?: Request | undefined
  }
): Effect.Effect<Journey, never, Scope.Scope> =>
  Effect.gen(function*() {
    const secret = secretCanary()
    const parameter: Canary = { ...secretCanary(), name: "parameter" }
    const { clientAuthentication, make } = options.request ?? {}
    const request = make?.({ child_secret: Redacted.make(parameter.value), scope: "orders" })
    const emulator = yield* Effect.orDie(Emulator.make({
      tls: options.tls,
      clientAuthentication,
      clients: [{ clientId: "invented-client", clientSecret: Redacted.make(secret.value) }]
    }))
    const { script } = options
    yield* Effect.orDie(emulator.fail(script))
    const seen: Array<readonly [name: string, value: unknown]> = []
    const { outputs } = yield* capture(
      travel(client, emulator, { ...options, secret, request }, (name, value) =>
        seen.push([name, value]))
    )
    const issued = yield* emulator.tokens
    return {
      canaries: [
        secret,
        parameter,
        ...issued.map(({ value }) =>
          tokenCanary(Redacted.value(value))
        ),
        ...scriptedTokens(script).map((value) =>
          tokenCanary(value)
        )
      ],
      outputs: [
        ...outputs,
        ...seen.flatMap(([name, value]) =>
          Exit.isExit(value) ? renderOuter(name, value) : renderDistinct(name, value)
        )
      ],
      errors: seen.flatMap(([, value]) => value instanceof Error ? [kindOf(value)] : []),
      apiStatuses: (yield* emulator.requests).flatMap(({ kind, status }) =>
        kind === "api" && status._tag === "Some" ? [status.value] : []
      )
    }
  })

/** Tokens in the scripted responses of the endpoint or of the other origin. */
const scriptedTokens = (script: Fault.Script): ReadonlyArray<string> => {
  const answers = Arr.ensure(script).filter(({ on }) => on === "token").map((fault) =>
    fault._tag === "Answer"
      ? Buffer.from(fault.body).toString().replaceAll("\0", "")
      : JSON.stringify(fault)
  )
  const written = ["token-of-a-scenario", "t".repeat(64)].filter((token) =>
    answers.some((answer) => answer.includes(token))
  )
  return answers.some((answer) => answer.includes("Redirect"))
    ? [...written, "token-of-another-origin"]
    : written
}

const kindOf = (error: object): string =>
  HttpClientError.isHttpClientError(error)
    ? `HttpClientError/${httpReason(error)}`
    : ["_tag", "reason"].flatMap((key) =>
      key in error ? [String(error[key as keyof typeof error])] : []
    ).join("/")

type See = (name: string, value: unknown) => void

const travel = (
  client: Client,
  emulator: Emulator.Service,
  { request, script, secret, wait }: {
    readonly script: Fault.Script
    readonly wait: keyof typeof limits
    readonly secret: Canary
    readonly request: TokenRequest.TokenRequest | undefined
  },
  see: See
) =>
  Effect.gen(function*() {
    const { url } = emulator
    const base = client.layer(emulator.ca)
    const credentials = ClientCredentials.make({
      clientId: "invented-client",
      clientSecret: Redacted.make(secret.value)
    })
    const { call, ...times } = limits[wait]
    const endpoint = { ...times, request }
    const storeAuth = StoreAuth.layer({
      authUrl: url,
      apiUrl: url,
      credentials,
      endpoint,
      provider: { cooldown: { base: "1 millis", max: "1 millis" } }
    })
    const context = yield* Layer.build(Layer.provideMerge(storeAuth, base))
    const plain = AuthorizedHttpClient.layerHttpClient({ apiUrl: url })

    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const authorized = yield* AuthorizedHttpClient.AuthorizedHttpClient
      const observe = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
        record(see, name, Effect.timeout(effect, call))

      see("the provider", provider)
      see("the request", request)
      see("the client", authorized)
      yield* observe("get", provider.get)
      yield* observe("status", provider.status)
      const response = yield* observe("a call", authorized.get("/orders"))
      if (Exit.isSuccess(response)) {
        yield* observe("its body", response.value.json)
        yield* observe(
          "its body by a schema",
          HttpClientResponse.schemaBodyJson(Orders)(response.value)
        )
        see("the response, its body read", response.value)
      }
      yield* observe(
        "a call through layerHttpClient",
        Effect.flatMap(HttpClient.get("/orders"), ({ arrayBuffer }) => arrayBuffer).pipe(
          Effect.provide(plain)
        )
      )
      // A fault of the token endpoint does not affect these calls: an earlier call has already met it.
      if (Arr.ensure(script).every(({ on }) => on === "api")) {
        yield* observe(
          "a call with filterStatusOk",
          Effect.flatMap(
            HttpClient.filterStatusOk(authorized).post("/orders", {
              body: HttpBody.unsafeJson({ id: 1 })
            }),
            ({ text }) => text
          )
        )
        yield* observe("a call elsewhere", authorized.get(`${emulator.elsewhere.url}/orders`))
        yield* observe(
          "a call elsewhere through layerHttpClient",
          HttpClient.get(emulator.elsewhere.url)
        ).pipe(
          Effect.provide(plain)
        )
      }
      yield* observe("refresh", provider.refresh)
      const current = yield* observe("current", provider.current)
      if (Exit.isSuccess(current) && current.value._tag === "Some") {
        yield* provider.invalidate(current.value.value)
      }
      yield* observe("get after a rejection", provider.get)
      yield* observe("status at the end", provider.status)

      // Without the provider, which creates new errors.
      const source = yield* TokenEndpoint.make({ authUrl: url, credentials, ...endpoint })
      yield* emulator.clearFaults
      yield* Effect.orDie(emulator.fail(script))
      see("the source", source)
      yield* observe("acquire", source.acquire(TokenSource.missing))
    }).pipe(Effect.provide(context))
  }).pipe(Effect.scoped)

const Orders = Schema.Struct({ orders: Schema.Array(Schema.Number) })

/** Runs the effect, logs its result and records its exit and values. */
const record = <A, E, R>(see: See, name: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const exit = yield* effect.pipe(
      Effect.tapErrorCause((cause) => Effect.logError("failed", cause)),
      Effect.withSpan(`the application's ${name}`),
      Effect.exit
    )
    const values = Exit.isSuccess(exit) ? [exit.value] : failuresOf(exit.cause)
    yield* Effect.log(name, ...values).pipe(
      Effect.annotateLogs({ exit }),
      Effect.withLogSpan(name)
    )
    see(name, exit)
    for (const value of values) see(`value of ${name}`, value)
    return exit
  })

/** A request of another OAuth server, and the method by which the emulator then reads the credentials. */
interface Request {
  readonly clientAuthentication: "client_secret_post" | "client_secret_basic"
  readonly make: (parameters: TokenRequest.Parameters) => TokenRequest.TokenRequest
}

const requests: Readonly<Record<string, Request>> = {
  post: { clientAuthentication: "client_secret_post", make: TokenRequest.clientSecretPost },
  basic: { clientAuthentication: "client_secret_basic", make: TokenRequest.clientSecretBasic }
}

const always = { times: Infinity } as const
const api = { on: "api", ...always } as const
const echoOfForm: Fault.Script = [Fault.echo(401), Fault.echo(503, always)]

/** Faults that scenarios of the emulator inject once. None is retried, so that each certainly occurs. */
const persistent: Readonly<Record<string, Fault.Script>> = {
  "token/always expired": Fault.fields({ expires_in: 0 }, always),
  "token/always too large": Fault.body(" ".repeat(100_000), always),
  "token/always refused": Fault.status(401, {
    body: JSON.stringify({ error: "invalid_client" }),
    ...always
  }),
  "token/always rate limited": Fault.status(429, always),
  "token/always unavailable": Fault.status(503, {
    headers: { "Retry-After": "31536000" },
    ...always
  }),
  "token/always redirected": Fault.redirect(307, "elsewhere", always),
  "token/always no token": Fault.fields({ token_type: "mac" }, always),
  "token/always self-signed": Fault.tls("SelfSigned", always)
}

/** The scenarios that need an emulator with TLS. */
const overTls: ReadonlyArray<string> = ["token/always self-signed"]

/**
 * In addition to the scenarios of the emulator: an endpoint that repeats the secret, and APIs that fail.
 * `endpoint/failures.test.ts` has every field that can repeat the secret.
 */
const extraScenarios: Readonly<Record<string, Fault.Script>> = {
  ...persistent,
  "token/echo of the form": echoOfForm,
  "api/reset": Fault.reset("answer", api),
  "api/reset-in-headers": Fault.reset("headers", api),
  "api/reset-in-body": Fault.reset("body", api),
  "api/close-in-body": Fault.close("body", api),
  "api/silence": Fault.hang(api),
  "api/silence-in-body": Fault.silence("body", api),
  "api/not-http": Fault.notHttp(api),
  "api/bad-chunks": Fault.badChunks(api),
  "api/gzip": Fault.gzip(api),
  "api/no-json": Fault.body("{broken", api),
  "api/nothing": Fault.body("", api),
  "api/500": Fault.status(500, {
    ...api,
    body: "<html>no</html>",
    headers: { "Content-Type": "text/html" }
  }),
  "api/401-then-reset": [Fault.status(401, { on: "api" }), Fault.reset("answer", api)],
  "api/401-then-500": [Fault.status(401, { on: "api" }), Fault.status(500, api)],
  "api/401-without-the-scope": Fault.status(401, {
    ...api,
    headers: { "WWW-Authenticate": "Bearer error=\"insufficient_scope\"" }
  }),
  "api/401-and-no-other-token": [
    Fault.delay("1 millis"),
    Fault.status(401, api),
    Fault.status(503, always)
  ]
}

const waitOf = (name: string): keyof typeof limits =>
  name in persistent || /^token\/40[0-5]|^api\/(?!.*silence|.*no-other-token)/.test(name)
    ? "long"
    : "short"

const all: ReadonlyArray<
  { readonly name: string } & Omit<Parameters<typeof take>[1], "wait">
> = [
  // Those that need a client with a key run in the tests of `@store-api/dpop`.
  ...Scenario.names.filter((name) => !needsKey(name)).map((name) => {
    const { options: { tls }, script } = Scenario.all[name]
    return { name, script, tls }
  }),
  ...Object.entries(extraScenarios).map(([name, script]) => ({
    name,
    script,
    tls: overTls.includes(name)
  })),
  ...Object.entries(requests).flatMap(([name, request]) =>
    Object.entries({ "token/echo of the form": echoOfForm, "token/specification": [] }).map((
      [scenario, script]
    ) => ({
      name: `${scenario}, sent by ${name}`,
      script,
      request
    }))
  )
]

/** A name up to its first hyphen: all redirects are of one kind, and all responses with the same status. */
const groupOf = (name: string) => name.split("-", 1)[0]

const isFirst = ({ name }: typeof all[number], index: number) =>
  all.findIndex((other) => groupOf(other.name) === groupOf(name)) === index

/** The errors that must occur in a run, so that the search has something to look at. */
const requiredErrors = [
  "TokenExpiredError/DeadOnArrival",
  ...["Transport", "Timeout", "Certificate", "Redirect", "TooLarge"].map((reason) =>
    `TokenRequestError/${reason}`
  ),
  ...["InvalidClient", "InvalidRequest", "RateLimited", "Unavailable", "Other"].map((it) =>
    `TokenRefusedError/${it}`
  ),
  "TokenResponseError",
  "UntrustedOriginError",
  ...["InvalidUrl", "Encode", "Transport", "StatusCode", "Decode"].map((reason) =>
    `HttpClientError/${reason}`
  ),
  "ParseError"
]

/** Runs the first scenario of each kind, which is enough for every kind of error, or the other ones. */
export const onEveryScenario = (client: Client, ofEachKind: "first" | "others"): void => {
  const scenarios = all.filter((scenario, index) =>
    isFirst(scenario, index) === (ofEachKind === "first")
  )
  const occurred = new Set<string>()
  const canaries = new Map<string, Canary>()
  const processOutputs: Array<Output> = []

  let stop = () => {}
  beforeAll(() => {
    stop = watchConsole((output) => processOutputs.push(output))
  })
  afterAll(() => stop())

  describe.concurrent(`no secret or token leaks on ${client.name}`, () => {
    for (const { name, ...options } of scenarios) {
      test.live(name, function*() {
        const journey = yield* take(client, { ...options, wait: waitOf(name) })
        for (const error of journey.errors) occurred.add(error)
        for (const status of journey.apiStatuses) occurred.add(`api ${status}`)
        for (const canary of journey.canaries) canaries.set(canary.value, canary)
        assert.isAbove(journey.outputs.length, 150)
        deepStrictEqual(leaksInOutputs(journey.outputs, journey.canaries), [])
      })
    }
  })

  describe(`outside the scenarios on ${client.name}`, () => {
    test("nothing leaks on the console of the process, in warnings or in metrics", function*() {
      const text = inspect(yield* Metric.snapshot, { depth: 10, maxArrayLength: Infinity })
      assert.include(text, "store_api_token_acquisitions")
      deepStrictEqual(
        leaksInOutputs([...processOutputs, { name: "metrics", text }], [...canaries.values()]),
        []
      )
    })

    if (ofEachKind === "first") {
      it("control: all kinds of errors occurred", () => {
        deepStrictEqual(requiredErrors.filter((kind) => !occurred.has(kind)), [])
      })

      it("control: the API responded with 200 as well as with 401", () => {
        deepStrictEqual(["api 200", "api 401"].filter((kind) => !occurred.has(kind)), [])
      })
    }
  })
}
