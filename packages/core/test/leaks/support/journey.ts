/**
 * Uses the library against an emulator as an application does. Collects all results, errors, services and responses
 * that the application receives.
 */
import { HttpBody, HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, ClientCredentials, StoreAuth, TokenEndpoint } from "@store-api/core"
import { Emulator, type FaultModel } from "@store-api/emulator"
import { Array as Arr, Effect, Exit, Layer, Option, Redacted, Schema, type Scope } from "effect"
import type { Client } from "../../support/clients.js"
import { failuresOf, httpReason } from "../../support/effectLine.js"
import { type Output, renderDistinct, renderOuter } from "../../support/renderings.js"
import { capture } from "../../support/telemetry.js"
import * as Canary from "./canary.js"

export interface Journey {
  readonly canaries: ReadonlyArray<Canary.Canary>
  readonly outputs: ReadonlyArray<Output>
  /** `tag/reason` of each error that occurred. */
  readonly errors: ReadonlyArray<string>
  readonly apiStatuses: ReadonlyArray<number>
}

export const take = (
  client: Client,
  options: { readonly script: (secret: Canary.Canary) => FaultModel.Script; readonly tls?: boolean | undefined }
): Effect.Effect<Journey, never, Scope.Scope> =>
  Effect.gen(function*() {
    const secret = Canary.secret()
    const emulator = yield* Effect.orDie(Emulator.make({
      tls: options.tls,
      clients: [{ clientId: "invented-client", clientSecret: Redacted.make(secret.value) }]
    }))
    const script = options.script(secret)
    yield* emulator.fail(script)
    const seen: Array<readonly [name: string, value: unknown]> = []
    const { outputs } = yield* capture(
      travel(client, emulator, script, secret, (name, value) => seen.push([name, value]))
    )
    const issued = yield* emulator.tokens
    return {
      canaries: [
        secret,
        ...issued.map(({ value }) => Canary.token(Redacted.value(value))),
        ...scriptedTokens(script).map((value) => Canary.token(value))
      ],
      outputs: [
        ...outputs,
        ...seen.flatMap(([name, value]) => Exit.isExit(value) ? renderOuter(name, value) : renderDistinct(name, value))
      ],
      errors: seen.flatMap(([, value]) => value instanceof Error ? [kindOf(value)] : []),
      apiStatuses: (yield* emulator.requests).flatMap(({ kind, status }) =>
        kind === "api" && status._tag === "Some" ? [status.value] : []
      )
    }
  })

/** Tokens in the scripted responses of the endpoint or of the other origin. */
const scriptedTokens = (script: FaultModel.Script): ReadonlyArray<string> => {
  const answers = Arr.ensure(script).filter(({ on }) => on === "token").map((fault) =>
    fault._tag === "Answer" ? Buffer.from(fault.body).toString().replaceAll("\0", "") : JSON.stringify(fault)
  )
  const written = ["token-of-a-scenario", "t".repeat(64)].filter((token) =>
    answers.some((answer) => answer.includes(token))
  )
  return answers.some((answer) => answer.includes("Redirect")) ? [...written, "token-of-another-origin"] : written
}

const kindOf = (error: object): string =>
  HttpClientError.isHttpClientError(error)
    ? `HttpClientError/${httpReason(error)}`
    : ["_tag", "reason"].flatMap((key) => key in error ? [String(error[key as keyof typeof error])] : []).join("/")

type See = (name: string, value: unknown) => void

const travel = (
  client: Client,
  emulator: Emulator.Service,
  script: FaultModel.Script,
  secret: Canary.Canary,
  see: See
) =>
  Effect.gen(function*() {
    const { url } = emulator
    const base = client.layer(emulator.ca)
    const credentials = ClientCredentials.make({
      clientId: "invented-client",
      clientSecret: Redacted.make(secret.value)
    })
    const endpoint = { attemptTimeout: "400 millis", deadline: "700 millis" } as const
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
      const observe = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) => record(see, name, effect)

      see("the provider", provider)
      see("the client", authorized)
      yield* observe("get", provider.get)
      yield* observe("status", provider.status)
      const response = yield* observe("a call", authorized.get("/orders"))
      if (Exit.isSuccess(response)) {
        yield* observe("its body", response.value.json)
        yield* observe("its body by a schema", HttpClientResponse.schemaBodyJson(Orders)(response.value))
        see("the response, its body read", response.value)
      }
      yield* observe(
        "a call through layerHttpClient",
        Effect.flatMap(HttpClient.get("/orders"), ({ arrayBuffer }) => arrayBuffer).pipe(Effect.provide(plain))
      )
      // A fault of the token endpoint does not affect these calls: an earlier call has already met it.
      if (Arr.ensure(script).every(({ on }) => on === "api")) {
        yield* observe(
          "a call with filterStatusOk",
          Effect.flatMap(
            HttpClient.filterStatusOk(authorized).post("/orders", { body: HttpBody.unsafeJson({ id: 1 }) }),
            ({ text }) => text
          )
        )
        yield* observe("a call elsewhere", authorized.get(`${emulator.elsewhere.url}/orders`))
        yield* observe("a call elsewhere through layerHttpClient", HttpClient.get(emulator.elsewhere.url)).pipe(
          Effect.provide(plain)
        )
      }
      yield* observe("refresh", provider.refresh)
      const current = yield* observe("current", provider.current)
      if (Exit.isSuccess(current) && current.value._tag === "Some") yield* provider.invalidate(current.value.value)
      yield* observe("get after a rejection", provider.get)
      yield* observe("status at the end", provider.status)

      // Without the provider, which creates new errors.
      const source = yield* TokenEndpoint.make({ authUrl: url, credentials, ...endpoint })
      yield* emulator.clearFaults
      yield* emulator.fail(script)
      see("the source", source)
      yield* observe("acquire", source.acquire(Option.none()))
    }).pipe(Effect.provide(context))
  }).pipe(Effect.scoped)

const Orders = Schema.Struct({ orders: Schema.Array(Schema.Number) })

/** Runs the effect, logs its result and records its exit and values. */
const record = <A, E, R>(see: See, name: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const exit = yield* effect.pipe(
      Effect.timeout("1 second"),
      Effect.tapErrorCause((cause) => Effect.logError("failed", cause)),
      Effect.withSpan(`the application's ${name}`),
      Effect.exit
    )
    const values = Exit.isSuccess(exit) ? [exit.value] : failuresOf(exit.cause)
    yield* Effect.log(name, ...values).pipe(Effect.annotateLogs({ exit }), Effect.withLogSpan(name))
    see(name, exit)
    for (const value of values) see(`value of ${name}`, value)
    return exit
  })
