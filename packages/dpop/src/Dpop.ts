/**
 * Tokens that are bound to a private key (DPoP, RFC 9449). Every request carries a proof that is signed with this key,
 * so a stolen token is useless without it.
 *
 * @since 1.0.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import type * as StoreAuth from "@store-api/core/StoreAuth"
import * as TokenRequest from "@store-api/core/TokenRequest"
import * as Effect from "effect/Effect"
import { identity as unchanged } from "effect/Function"
import * as Redacted from "effect/Redacted"
import { withProofs } from "./internal/proofs.js"
import * as signingKey from "./internal/signingKey.js"

/**
 * The key that signs the proofs.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * An EC P-256 private key (PKCS #8 in PEM). Processes that share a token need the same one. Default: a new key that
   * never leaves this process, so its tokens are shared with no other.
   */
  readonly privateKey?: Redacted.Redacted | undefined
}

/** The options of `StoreAuth` that `bind` changes. */
type Bindable = Partial<Pick<StoreAuth.Options, "transformClient" | "endpoint">>

/**
 * A key, and the nonces that servers have sent.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface Dpop {
  /** The thumbprint of the public key (RFC 7638). Servers call it `jkt` (RFC 9449 §6). */
  readonly thumbprint: string
  /**
   * Returns options of `StoreAuth`, `NodeStoreAuth` or `PromiseStoreAuth` with which every request carries a proof, and
   * tokens must have the type `DPoP`. Processes share a token only if their keys are equal. Proofs are added after your
   * `transformClient`, so a request that it repeats or redirects gets a new one.
   *
   * An API may answer 401 because it wants a nonce (RFC 9449 §9). Then the request is repeated once with the nonce of
   * that response, unless its body is a stream or raw. `TokenEndpoint` repeats token requests itself, because another
   * attempt may need another assertion too.
   *
   * Leave `client.header` unset: servers expect `Authorization: DPoP <token>` (RFC 9449 §7.1), which is the default.
   */
  readonly bind: <A>(options: A & Bindable) => A
}

/**
 * Imports the key, or generates one. Fails with `ConfigurationError` if `privateKey` is not an EC P-256 private key.
 *
 * The proofs contain the time in seconds. Servers that use no nonces often refuse a clock that is off by more than
 * some seconds.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { StoreAuth } from "@store-api/core"
 * import { Dpop } from "@store-api/dpop"
 * import { Effect, Layer } from "effect"
 *
 * const StoreAuthLive = Effect.gen(function*() {
 *   const dpop = yield* Dpop.make()
 *   return StoreAuth.layer(dpop.bind(yield* StoreAuth.config()))
 * }).pipe(Layer.unwrapEffect, Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  { privateKey }: Options = {}
): Effect.Effect<Dpop, ConfigurationError> =>
  Effect.map(
    privateKey === undefined ? signingKey.generate : signingKey.fromPem(privateKey),
    (key) => {
      const { thumbprint } = key
      const addProofs = withProofs(key)
      const ownIdentity = (identity: string) => `dpop ${thumbprint} ${identity}`
      return {
        thumbprint,
        bind: (options) => {
          const { endpoint, transformClient = unchanged } = options
          const request = endpoint?.request ?? TokenRequest.specification
          const { identity } = request
          return {
            ...options,
            transformClient: (client: HttpClient.HttpClient) =>
              transformClient(addProofs(client)),
            endpoint: {
              ...endpoint,
              request: {
                ...request,
                tokenType: "DPoP",
                identity: Redacted.isRedacted(identity)
                  ? Redacted.make(ownIdentity(Redacted.value(identity)))
                  : ownIdentity(identity)
              }
            }
          }
        }
      }
    }
  )
