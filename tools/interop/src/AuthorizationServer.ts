/**
 * A server under test: a real authorization server, started on loopback, and a protected resource that accepts its
 * tokens.
 */
import type { Effect, Redacted, Scope } from "effect"

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

export interface Options {
  /** The lifetime of tokens in seconds. */
  readonly life: number
}

export interface Running {
  /** The `authUrl` of `StoreAuth`: the token endpoint is this and `/v1/oauth/accesstoken`. */
  readonly authUrl: string
  /** The protected resource: responds with 200 to a valid token of the server, otherwise with 401 and a challenge. */
  readonly apiUrl: string
  readonly credentials: Credentials
  /** The token requests that reached the server, as it counts them. */
  readonly tokenRequests: Effect.Effect<number>
  /** The calls that reached the resource, including those with a 401. */
  readonly calls: Effect.Effect<number>
  /** The 401 responses of the resource. */
  readonly unauthorized: Effect.Effect<number>
  /** Revokes a token in the server's own way. Present if `revocation.offered`. */
  readonly revoke?: ((token: Redacted.Redacted) => Effect.Effect<void>) | undefined
}

/** A server that can be started several times. It stops when the scope ends. */
export interface AuthorizationServer {
  readonly name: string
  /** The upstream version that the program or its package reports, without a distribution's revision. */
  readonly version: string
  /** How the resource checks a token, in a few words for the page. */
  readonly checks: string
  /** How a token is revoked, or what the server lacks for that: in a few words for the page. */
  readonly revocation: { readonly offered: boolean; readonly how: string }
  readonly start: (options: Options) => Effect.Effect<Running, never, Scope.Scope>
}
