/**
 * A server that keeps the specification of the access-token service to the letter, and a protected API that wants its
 * tokens. Loopback only: for development without credentials, and for tests.
 *
 * @since 0.1.0
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
import type { Observing } from "./internal/observer.js"
import * as requestLog from "./internal/requestLog.js"
import { listen } from "./internal/server.js"
import * as settings from "./internal/settings.js"
import * as tlsServers from "./internal/tls.js"
import * as tokens from "./internal/tokens.js"
import type { IssuedToken } from "./IssuedToken.js"
import type { RecordedRequest } from "./RecordedRequest.js"

export {
  /**
   * The invented client that is known by default.
   *
   * @since 0.1.0
   * @category constants
   */
  demoClient
} from "./Client.js"
export type {
  /**
   * How an emulator is set up.
   *
   * @since 0.1.0
   * @category models
   */
  Options
} from "./EmulatorOptions.js"

/**
 * A running emulator, seen from a test. Nothing of it fails.
 *
 * @see Emulator
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** Base of both the token endpoint (`{url}/v1/oauth/accesstoken`) and the API; no slash at its end. */
  readonly url: string
  /** All tokens issued so far, in order, dead ones included. */
  readonly tokens: Effect.Effect<ReadonlyArray<IssuedToken>>
  /** Revokes one token, or all; answers how many live ones it has ended. */
  readonly revoke: (token?: Redacted.Redacted | string) => Effect.Effect<number>
  /** All requests so far, in the order of arrival, also those without an answer yet. */
  readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
  /** Forgets the requests so far. */
  readonly clearRequests: Effect.Effect<void>
  /** Appends steps to the script of faults. A step that cannot be sent (status 99, TLS without `tls`) is a defect. */
  readonly fail: (script: Fault.Script) => Effect.Effect<void>
  /** The steps not used up yet; `times` says how many requests are left to each. */
  readonly pendingFaults: Effect.Effect<ReadonlyArray<Fault.Fault>>
  /** Drops the steps not used up yet; a request that is being delayed or left hanging stays so. */
  readonly clearFaults: Effect.Effect<void>
  /** How many sockets are open now. */
  readonly connections: Effect.Effect<number>
  /**
   * A second origin on this machine, over http, to which redirects can point. It answers everybody with a token; no
   * request that carries a credential should ever get there.
   */
  readonly elsewhere: {
    /** Its base; no slash at its end. */
    readonly url: string
    /** All requests that got there, in the order of arrival. */
    readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
  }
  /** The certificate, as PEM, by which clients trust an emulator with `tls`; none without. */
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
 *   // … ask `emulator.url` for a token …
 *   return yield* emulator.requests
 * }).pipe(Effect.provide(Emulator.layer({ tokenLife: "2 seconds" })))
 * ```
 *
 * @since 0.1.0
 * @category tags
 */
export class Emulator extends Context.Tag("@store-api/emulator/Emulator")<Emulator, Service>() {}

/**
 * Sees each request end. Read once, when an emulator starts. A process that runs for long keeps few requests and prints or
 * counts them here.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 * import { Console, Effect } from "effect"
 *
 * const printing = Emulator.make().pipe(
 *   Effect.provideService(Emulator.Observer, { keep: 0, onEnd: ({ method, url }) => Console.log(`${method} ${url}`) })
 * )
 * ```
 *
 * @since 0.1.0
 * @category references
 */
export class Observer extends Context.Reference<Observer>()("@store-api/emulator/Observer", {
  defaultValue: (): Observing => ({ keep: Infinity, onEnd: () => Effect.void })
}) {}

/**
 * Starts an emulator; closing the scope ends all its connections at once, hanging requests too.
 *
 * Time is told by the `Clock` it is started with, so that a test clock makes tokens expire and delays pass. Fails with
 * `EmulatorError` when an option or the port cannot be used.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Service, EmulatorError, Scope.Scope> =>
  Effect.gen(function*() {
    const resolved = yield* settings.resolve(options)
    const observer = yield* Observer
    const issued = tokens.make(resolved)
    const log = requestLog.make(resolved, observer, issued)
    const faults = faultQueue.make(resolved)
    const tls = resolved.tls ? yield* tlsServers.make : undefined
    const secondLog = requestLog.make(resolved, { ...observer, onEnd: () => Effect.void }, issued)
    const second = yield* listen({ ...resolved, port: 0 }, app.secondOrigin(resolved, secondLog))
    const parts = { settings: resolved, tokens: issued, log, faults, secondOrigin: second.origin }
    const server = yield* listen(resolved, app.emulator(parts), () => faults.take("connection"), tls)
    return {
      url: `${server.origin}${resolved.basePath}`,
      tokens: issued.all,
      revoke: issued.revoke,
      requests: log.all,
      clearRequests: log.clear,
      fail: faults.append,
      pendingFaults: faults.pending,
      clearFaults: faults.clear,
      connections: server.connections,
      elsewhere: { url: second.origin, requests: secondLog.all },
      ca: Option.map(Option.fromNullable(tls), ({ ca }) => ca)
    }
  })

/**
 * An emulator for as long as the layer lives. Fails with `EmulatorError` when an option or the port cannot be used.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Emulator, EmulatorError> =>
  Layer.scoped(Emulator, make(options))
