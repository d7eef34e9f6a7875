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
  /** Seconds from the issue of a token to its end. */
  readonly life: number
}

export interface Running {
  /** The `authUrl` of `StoreAuth`: the token endpoint is this and `/v1/oauth/accesstoken`. */
  readonly authUrl: string
  /** The protected resource: responds with 200 to a valid token of the server, with 401 and a challenge to others. */
  readonly apiUrl: string
  readonly credentials: Credentials
  /** How many token requests reached the server, as the server's side counts them. */
  readonly tokenRequests: Effect.Effect<number>
  /** How many calls reached the resource, those that it answered with 401 included. */
  readonly calls: Effect.Effect<number>
  /** How many 401 the resource answered. */
  readonly unauthorized: Effect.Effect<number>
  /** Ends a token before its time, the way the server offers it; there where `revocation` says that it is offered. */
  readonly revoke?: ((token: Redacted.Redacted) => Effect.Effect<void>) | undefined
}

/** A server that can be started as often as wanted; all it started ends with the scope. */
export interface AuthorizationServer {
  readonly name: string
  /** As the running program or its package reports it: the upstream number, without a distribution's revision. */
  readonly version: string
  /** How the resource checks a token, in a few words for the page. */
  readonly checks: string
  /** How a token is revoked, or what the server lacks for that: in a few words for the page. */
  readonly revocation: { readonly offered: boolean; readonly how: string }
  readonly start: (options: Options) => Effect.Effect<Running, never, Scope.Scope>
}
