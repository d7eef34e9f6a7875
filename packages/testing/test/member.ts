/** One member of a fleet: a provider, a client and a token store, composed as an application composes them. */
import { createHash } from "node:crypto"
import type { HttpClientError } from "@effect/platform"
import {
  type AccessToken,
  type AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  TokenRequest,
  TokenStore
} from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import {
  Clock,
  Duration,
  Effect,
  Exit,
  Fiber,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  Redacted,
  Scope
} from "effect"
import { serve } from "./serve.js"
import * as VirtualClock from "./virtualClock.js"

/** Serializable as JSON. */
export interface Settings {
  readonly authUrl: string
  readonly apiUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** A member without it sends the request of the specification. */
  readonly scope?: string
  /** A member without it shares nothing. */
  readonly storeUrl?: string
  readonly lease?: Duration.DurationInput
  readonly maxWait?: Duration.DurationInput
  readonly storeTimeout?: Duration.DurationInput
  /** Of the token endpoint. */
  readonly attemptTimeout?: Duration.DurationInput
  readonly deadline?: Duration.DurationInput
  /** Whether the clock moves only by `advance`, if the member is a process. */
  readonly isVirtual?: boolean
}

export interface Warning {
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
}

/** The store at a URL. */
export type StoreAt = (url: string) => Layer.Layer<TokenStore.TokenStore, unknown>

type GetError = AccessTokenError.AccessTokenError

type CallError =
  | GetError
  | AccessTokenError.UntrustedOriginError
  | HttpClientError.HttpClientError

export interface Member {
  /** A digest of the token. */
  readonly get: Effect.Effect<string, GetError>
  readonly refresh: Effect.Effect<string, GetError>
  /** One API request; its status. */
  readonly call: Effect.Effect<number, CallError>
  readonly isAcquiring: Effect.Effect<boolean>
  /** Whether the store works. */
  readonly reaches: Effect.Effect<boolean>
  readonly warnings: Effect.Effect<ReadonlyArray<Warning>>
  /** Starts to call the API at this interval in milliseconds. */
  readonly begin: (every: number) => Effect.Effect<void>
  /** Stops the calls that `begin` started. Returns the status or the error tag of each. */
  readonly end: Effect.Effect<ReadonlyArray<string>>
  /** Advances the virtual clock, if the member is a process. Others have the test's clock. */
  readonly advance: (by: Duration.DurationInput) => Effect.Effect<void>
}

export const shown = ({ value }: Pick<AccessToken.AccessToken, "value">): string =>
  createHash("sha256").update(Redacted.value(value)).digest("hex").slice(0, 12)

/** The store of a member, which counts by its clock if that is virtual. */
const storeOf = (
  { isVirtual }: Settings,
  store: Layer.Layer<TokenStore.TokenStore, unknown>
) =>
  isVirtual === true
    ? Layer.effect(
      TokenStore.TokenStore,
      Effect.map(TokenStore.TokenStore, onClockOfMembers)
    ).pipe(Layer.provide(store))
    : store

/**
 * A store that counts lifetimes by the clock that its members share. A database would count them in real time, of which
 * almost none passes while a virtual clock advances by hours. The text of an entry begins with its end.
 */
const onClockOfMembers = (store: TokenStore.Service): TokenStore.Service => {
  const texts = new Map<string, string>()
  return {
    ...store,
    get: (key) =>
      Effect.zipWith(
        store.get(key),
        Clock.currentTimeMillis,
        (stored, now) =>
          Option.flatMap(stored, ({ entry: text }) => {
            const [end = ""] = text.split(" ", 1)
            const entry = text.slice(end.length + 1)
            texts.set(entry, text)
            const remaining = Number(end) - now
            return remaining > 0 ? Option.some({ entry, remaining }) : Option.none()
          })
      ),
    put: (key, entry, life) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const text = `${now + Duration.toMillis(life)} ${entry}`
        texts.set(entry, text)
        return store.put(key, text, life)
      }),
    remove: (key, entry) => store.remove(key, texts.get(entry) ?? entry)
  }
}

export const make = (
  settings: Settings,
  storeAt: StoreAt
): Effect.Effect<Member, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { attemptTimeout, deadline, lease, maxWait, storeTimeout, storeUrl } = settings
    const post = ({ scope }: Settings) =>
      scope === undefined ? undefined : TokenRequest.clientSecretPost({ scope })
    const options = {
      ...settings,
      clientSecret: Redacted.make(settings.clientSecret),
      endpoint: { attemptTimeout, deadline, request: post(settings) },
      shared: { lease, maxWait, storeTimeout }
    }
    const warnings: Array<Warning> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      if (logLevel.label !== "WARN") return
      const texts = Object.fromEntries(HashMap.toEntries(HashMap.map(annotations, String)))
      warnings.push({ message: String(message), annotations: texts })
    })
    const runtime = yield* Layer.toRuntime((storeUrl === undefined
      ? Layer.merge(NodeStoreAuth.layer(options), TokenStore.layerMemory)
      : Layer.provideMerge(
        NodeStoreAuth.layerShared(options),
        storeOf(settings, storeAt(storeUrl))
      )).pipe(
        // The fibers that ask for a token use it too.
        Layer.provideMerge(
          Layer.merge(
            Logger.replace(Logger.defaultLogger, logger),
            Logger.minimumLogLevel(LogLevel.Debug)
          )
        )
      ))
    const { get, refresh, status } = yield* Effect.provide(
      AccessTokenProvider.AccessTokenProvider,
      runtime
    )
    const client = yield* Effect.provide(AuthorizedHttpClient.AuthorizedHttpClient, runtime)
    const { get: look } = yield* Effect.provide(TokenStore.TokenStore, runtime)

    const call = client.get("/v1/orders").pipe(
      Effect.flatMap((response) => Effect.as(response.text, response.status)),
      Effect.provide(runtime)
    )
    let isCalling = false
    let caller: Fiber.Fiber<ReadonlyArray<string>> | undefined
    const scope = yield* Effect.scope
    return {
      get: Effect.provide(Effect.map(get, shown), runtime),
      refresh: Effect.provide(Effect.map(refresh, shown), runtime),
      call,
      isAcquiring: Effect.map(status, ({ acquiring }) => acquiring),
      reaches: Effect.isSuccess(look("store-api-token-v1:any")),
      warnings: Effect.sync(() => [...warnings]),
      begin: (every) =>
        Effect.gen(function*() {
          isCalling = true
          const outcomes: Array<string> = []
          caller = yield* call.pipe(
            Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: String }),
            Effect.tap((outcome) => Effect.sync(() => outcomes.push(outcome))),
            Effect.zipRight(Effect.sleep(every)),
            Effect.repeat({ while: () => isCalling }),
            Effect.as(outcomes),
            Effect.forkIn(scope)
          )
        }),
      end: Effect.suspend(() => {
        isCalling = false
        return caller === undefined ? Effect.succeed([]) : Fiber.join(caller)
      }),
      advance: () => Effect.void
    }
  })

/** An order to the process of a member. */
export type Order =
  | { readonly name: "open"; readonly settings: Settings }
  | { readonly name: "begin"; readonly every: number }
  | { readonly name: "advance"; readonly by: Duration.DurationInput }
  | { readonly name: Exclude<keyof Member, "begin" | "advance"> }

/**
 * Makes this process one member of a fleet, whose orders are those of `fleet.ts`. With settings (argument 1), it only
 * gets one token, writes `done`, and exits unless it leaves its layer open (argument 2: `"leaked"`).
 */
export const run = (storeAt: StoreAt): void => {
  let scope = Effect.runSync(Scope.make())
  let member: Member | undefined
  let clock = Clock.make()

  const open = (settings: Settings) =>
    Effect.gen(function*() {
      yield* Scope.close(scope, Exit.void)
      scope = yield* Scope.make()
      const virtual = VirtualClock.make()
      clock = settings.isVirtual === true ? virtual.clock : Clock.make()
      const made = Effect.withClock(Scope.extend(make(settings, storeAt), scope), clock)
      member = { ...yield* Effect.orDie(made), advance: virtual.advance }
      return member
    })

  const [settings, end] = process.argv.slice(2)

  const perform = (order: Order): Effect.Effect<unknown, CallError> => {
    if (order.name === "open") return Effect.asVoid(open(order.settings))
    if (member === undefined) return Effect.dieMessage("the member is not open")
    if (order.name === "advance") return member.advance(order.by)
    return order.name === "begin" ? member.begin(order.every) : member[order.name]
  }

  if (settings === undefined) {
    serve((order: Order) => Effect.withClock(perform(order), clock))
  } else {
    const program = Effect.gen(function*() {
      const { get } = yield* open(JSON.parse(settings) as Settings)
      yield* get
      if (end !== "leaked") yield* Scope.close(scope, Exit.void)
      process.stdout.write("done\n")
    })
    void Effect.runPromise(program)
  }
}
