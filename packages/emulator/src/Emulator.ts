/**
 * A server that implements the specification of the access-token service, and a protected API that requires its tokens.
 * It listens on loopback only, for tests and for development without credentials.
 *
 * @since 1.0.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { EmulatorError } from "./EmulatorError.js"
import type { Options } from "./EmulatorOptions.js"
import type * as Fault from "./Fault.js"
import * as app from "./internal/app.js"
import * as faultQueue from "./internal/faultQueue.js"
import * as requestLog from "./internal/requestLog.js"
import { listen } from "./internal/server.js"
import * as settings from "./internal/settings.js"
import * as tlsServers from "./internal/tls.js"
import * as tokens from "./internal/tokens.js"
import type { IssuedToken } from "./IssuedToken.js"
import type { RecordedRequest } from "./RecordedRequest.js"
import type * as Scenario from "./Scenario.js"

export {
  /**
   * The invented client that an emulator has by default.
   *
   * @since 1.0.0
   * @category constants
   */
  demoClient
} from "./Client.js"
export type {
  /**
   * The options of an emulator.
   *
   * @since 1.0.0
   * @category models
   */
  Options
} from "./EmulatorOptions.js"

/**
 * A running emulator. Only `fail` can fail.
 *
 * @see Emulator
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /** The base URL of the API and the token endpoint (default: `{url}/v1/oauth/accesstoken`), without a final slash. */
  readonly url: string
  /** The issued tokens in order. Those that expired more than an hour ago may be missing. */
  readonly tokens: Effect.Effect<ReadonlyArray<IssuedToken>>
  /** Revokes one token, by its value or its `id`, or all tokens. Returns how many of them were valid. */
  readonly revoke: (token?: Redacted.Redacted | string | number) => Effect.Effect<number>
  /** The requests in order of arrival, including those without a response. */
  readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
  /** Deletes the recorded requests. */
  readonly clearRequests: Effect.Effect<void>
  /**
   * Appends steps, or those of a scenario, to the script of faults. `times` replaces the number of requests to which
   * each step applies. If a step cannot be performed, such as one with status 99, or a TLS flaw without `tls`, it fails
   * with `EmulatorError` and appends none. The error names a field of the step, such as `script[0].status`.
   */
  readonly fail: (
    script: Fault.Script | Scenario.Name,
    times?: number
  ) => Effect.Effect<void, EmulatorError>
  /** The remaining steps. `times` is the number of requests to which each still applies. */
  readonly pendingFaults: Effect.Effect<ReadonlyArray<Fault.Fault>>
  /** Deletes the remaining steps. Does not affect a request that is already delayed or hanging. */
  readonly clearFaults: Effect.Effect<void>
  /** The number of open sockets. */
  readonly connections: Effect.Effect<number>
  /**
   * Another origin on this machine, over http, to which redirects can point. It responds to every request with a token.
   * A correct client sends it no request with credentials.
   */
  readonly elsewhere: {
    /** Its base URL, without a trailing slash. */
    readonly url: string
    /** Its requests in order of arrival. */
    readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
  }
  /**
   * The certificate of the authority, as PEM. Clients that trust it accept an emulator with `tls`. None without `tls`.
   */
  readonly ca: Option.Option<string>
}

/**
 * The emulator as a service.
 *
 * @example
 * ```ts
 * import { Emulator, Fault } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const emulator = yield* Emulator.Emulator
 *   yield* emulator.fail(Fault.status(503))
 *   // … request a token from `emulator.url` …
 *   return yield* emulator.requests
 * }).pipe(Effect.provide(Emulator.layer({ tokenLife: "2 seconds" })))
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class Emulator
  extends Context.Tag("@store-api/emulator/Emulator")<Emulator, Service>()
{}

/**
 * Sets how many requests an emulator records, and runs effects with each line of its log and when tokens change. The
 * emulator reads it when it starts. In a process that runs for days, keep few requests, and print the log.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 * import { Console, Effect } from "effect"
 *
 * const printing = Emulator.make().pipe(
 *   Effect.provideService(Emulator.Observer, { keep: 0, onLine: (text) => Console.log(text) })
 * )
 * ```
 *
 * @since 1.0.0
 * @category references
 */
export class Observer extends Context.Reference<Observer>()("@store-api/emulator/Observer", {
  defaultValue: (): requestLog.ObserverService => ({ keep: Infinity })
}) {}

/**
 * Starts an emulator. Closing the scope closes all its connections, including those of hanging requests.
 *
 * The emulator uses the `Clock` with which it is started, so that `TestClock.adjust` makes tokens expire and delays
 * pass. Fails with `EmulatorError` if an option or the port cannot be used.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const twoOrigins = Effect.scoped(Effect.gen(function*() {
 *   const [auth, api] = yield* Effect.all([Emulator.make(), Emulator.make({ basePath: "/v2" })])
 *   return { authUrl: auth.url, apiUrl: api.url }
 * }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<Service, EmulatorError, Scope.Scope> =>
  Effect.gen(function*() {
    const resolvedSettings = yield* settings.resolve(options)
    const observer = yield* Observer
    const tokenStore = tokens.make(resolvedSettings, observer.onTokens ?? (() => Effect.void))
    const log = requestLog.make(resolvedSettings, observer, tokenStore)
    const faults = faultQueue.make(resolvedSettings)
    const tls = resolvedSettings.tls ? yield* tlsServers.make : undefined
    const secondLog = requestLog.make(resolvedSettings, { keep: observer.keep }, tokenStore)
    const second = yield* listen(
      { ...resolvedSettings, port: 0, tls: false },
      app.serveSecondOrigin(resolvedSettings, secondLog),
      yield* app.logRefusals(secondLog)
    )
    const parts = {
      settings: resolvedSettings,
      tokens: tokenStore,
      log,
      faults,
      secondOrigin: second.origin,
      tls
    }
    const server = yield* listen(
      resolvedSettings,
      yield* app.serve(parts),
      yield* app.logRefusals(log),
      yield* app.acceptConnection(parts)
    )
    return {
      url: `${server.origin}${resolvedSettings.basePath}`,
      tokens: tokenStore.all,
      revoke: tokenStore.revoke,
      requests: log.all,
      clearRequests: log.clear,
      fail: faults.append,
      pendingFaults: faults.pending,
      clearFaults: faults.clear,
      connections: server.connections,
      elsewhere: { url: second.origin, requests: secondLog.all },
      ca: Option.fromNullable(tls?.ca)
    }
  })

/**
 * Provides an emulator that stops when the scope of the layer closes. Fails with `EmulatorError` if an option or the
 * port cannot be used.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 * import { Redacted } from "effect"
 *
 * const EmulatorLive = Emulator.layer({
 *   port: 4010,
 *   clients: [{ clientId: "invented-id", clientSecret: Redacted.make("invented-secret") }]
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Emulator, EmulatorError> =>
  Layer.scoped(Emulator, make(options))
