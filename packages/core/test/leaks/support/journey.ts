/**
 * What an application does with the library against an emulator, with everything that it gets to see on the way: results,
 * errors, services, responses.
 */
import { HttpBody, HttpClient, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, ClientCredentials, StoreAuth, TokenEndpoint } from "@store-api/core"
import { Emulator, type FaultModel } from "@store-api/emulator"
import { Array as Arr, Cause, Chunk, Effect, Exit, Layer, Option, Redacted, Schema, type Scope } from "effect"
import * as Canary from "./canary.js"
import type { Client } from "./clients.js"
import { type Output, renderDistinct, renderOuter } from "./renderings.js"
import { capture } from "./telemetry.js"

export interface Journey {
  readonly canaries: ReadonlyArray<Canary.Canary>
  readonly outputs: ReadonlyArray<Output>
  /** `tag/reason` of each error that was met. */
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

/** Tokens that the endpoint, or the other origin in its place, answers with by script. */
const scriptedTokens = (script: FaultModel.Script): ReadonlyArray<string> => {
  const answers = Arr.ensure(script).filter(({ on }) => on === "token").map((fault) =>
    fault._tag === "Answer" ? Buffer.from(fault.body).toString().replaceAll("\0", "") : JSON.stringify(fault)
  )
  const written = ["token-of-a-scenario", "t".repeat(64)].filter((token) =>
    answers.some((said) => said.includes(token))
  )
  return answers.some((said) => said.includes("Redirect")) ? [...written, "token-of-another-origin"] : written
}

const kindOf = (error: object): string =>
  ["_tag", "reason"].flatMap((key) => key in error ? [String(error[key as keyof typeof error])] : []).join("/")

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
    const base = client(emulator.ca)
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
      const asks = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) => tell(see, name, effect)

      see("the provider", provider)
      see("the client", authorized)
      yield* asks("get", provider.get)
      yield* asks("status", provider.status)
      const response = yield* asks("a call", authorized.get("/orders"))
      if (Exit.isSuccess(response)) {
        yield* asks("its body", response.value.json)
        yield* asks("its body by a schema", HttpClientResponse.schemaBodyJson(Orders)(response.value))
        see("the response, its body read", response.value)
      }
      yield* asks(
        "a call through layerHttpClient",
        Effect.flatMap(HttpClient.get("/orders"), ({ arrayBuffer }) => arrayBuffer).pipe(Effect.provide(plain))
      )
      // A fault of the token endpoint changes nothing about these: the call before has met it.
      if (Arr.ensure(script).every(({ on }) => on === "api")) {
        yield* asks(
          "a call with filterStatusOk",
          Effect.flatMap(
            HttpClient.filterStatusOk(authorized).post("/orders", { body: HttpBody.unsafeJson({ id: 1 }) }),
            ({ text }) => text
          )
        )
        yield* asks("a call elsewhere", authorized.get(`${emulator.elsewhere.url}/orders`))
        yield* asks("a call elsewhere through layerHttpClient", HttpClient.get(emulator.elsewhere.url)).pipe(
          Effect.provide(plain)
        )
      }
      yield* asks("refresh", provider.refresh)
      const current = yield* asks("current", provider.current)
      if (Exit.isSuccess(current) && current.value._tag === "Some") yield* provider.invalidate(current.value.value)
      yield* asks("get after a rejection", provider.get)
      yield* asks("status at the end", provider.status)

      // The source by itself: the provider makes its errors anew.
      const source = yield* TokenEndpoint.make({ authUrl: url, credentials, ...endpoint })
      yield* emulator.clearFaults
      yield* emulator.fail(script)
      see("the source", source)
      yield* asks("acquire", source.acquire(Option.none()))
    }).pipe(Effect.provide(context))
  }).pipe(Effect.scoped)

const Orders = Schema.Struct({ orders: Schema.Array(Schema.Number) })

/** Prints the outcome in every way that an application has, from within Effect. */
const tell = <A, E, R>(see: See, name: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const exit = yield* effect.pipe(
      Effect.timeout("1 second"),
      Effect.tapErrorCause((cause) => Effect.logError("failed", cause)),
      Effect.withSpan(`the application's ${name}`),
      Effect.exit
    )
    const held = Exit.isSuccess(exit) ? [exit.value] : failuresOf(exit.cause)
    yield* Effect.log(name, ...held).pipe(Effect.annotateLogs({ exit }), Effect.withLogSpan(name))
    see(name, exit)
    for (const value of held) see(`${name}, what it holds`, value)
    return exit
  })

const failuresOf = (cause: Cause.Cause<unknown>): ReadonlyArray<unknown> => [
  ...Chunk.toReadonlyArray(Cause.failures(cause)),
  ...Chunk.toReadonlyArray(Cause.defects(cause))
]
