/** Processes that share a token, each a `SharedTokenSource` of the test's process. */
import { HttpClient } from "@effect/platform"
import {
  AccessToken,
  ClientCredentials,
  SharedTokenSource,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { DateTime, Effect, Option, Redacted } from "effect"
import { settle, watchSleeps } from "./effectMajor.js"

export const authUrl = "https://auth.shop.example/base"

export const credentialsOf = (clientId: string, clientSecret: string) =>
  Effect.orDie(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))

export const credentials = Effect.runSync(
  credentialsOf("invented-client-id", "invented-client-secret-0123456789")
)

type EndpointOptions = Pick<
  TokenEndpoint.Options,
  "authUrl" | "path" | "request" | "credentials" | "maxLifetime"
>

/** What the tokens of an endpoint are for. Nothing is sent to it. */
export const purposeOf = (options: Partial<EndpointOptions> = {}) =>
  TokenEndpoint.make({ authUrl, credentials: Effect.succeed(credentials), ...options }).pipe(
    Effect.provideService(
      HttpClient.HttpClient,
      HttpClient.make(() => Effect.dieMessage("nothing is sent"))
    ),
    Effect.map((endpoint) => Option.getOrThrow(endpoint.purpose))
  )

export const purpose = Effect.runSync(Effect.flatten(purposeOf()))

/** A token that is acquired now, by the clock in the context, with a value in every field. */
export const fullToken = (value: string, minutes = 60) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      scope: "read write",
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes }),
      applicationName: Option.some("an application"),
      developerEmail: Option.some(Redacted.make("developer@shop.example")),
      issuedAt: Option.some("1767225600000"),
      clientId: Option.some("invented-client-id")
    }))

/** The options of an endpoint, and of the shared source over it. */
export type MemberOptions = SharedTokenSource.Options & Partial<EndpointOptions>

/** The shared source of one process of the fleet, over the common endpoint and store. */
export const member = (
  source: TokenSource.Service,
  store: TokenStore.Service,
  options: MemberOptions = {}
) =>
  Effect.gen(function*() {
    yield* watchSleeps
    const purpose = Option.some(yield* purposeOf(options))
    return yield* SharedTokenSource.make(options).pipe(
      Effect.provideService(TokenSource.TokenSource, { ...source, purpose }),
      Effect.provideService(TokenStore.TokenStore, store)
    )
  })

/** The number of running Web Crypto operations. They run in threads and take real time. */
let encrypting = 0

for (const name of ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const) {
  const original: (...args: Array<never>) => Promise<unknown> = crypto.subtle[name].bind(
    crypto.subtle
  )
  Object.defineProperty(crypto.subtle, name, {
    configurable: true,
    value: (...args: Array<never>) => {
      encrypting += 1
      return original(...args).finally(() => {
        encrypting -= 1
      })
    }
  })
}

/** Waits until every fiber waits for virtual time. */
export const settled: Effect.Effect<void> = Effect.repeatN(settle, 1).pipe(
  Effect.flatMap(() => encrypting === 0 ? Effect.void : settled)
)
