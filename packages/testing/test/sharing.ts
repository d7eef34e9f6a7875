/** Processes that share a token, each a `SharedTokenSource` of the test's process. */
import { AccessToken, ClientCredentials, SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
import { DateTime, Effect, Option, Redacted } from "effect"
import { settle, watchSleeps } from "./effectLine.js"

export const authUrl = "https://auth.shop.example/base"

/** What the shared token is for. */
export const purpose = { url: `${authUrl}/v1/oauth/accesstoken`, identity: "" }

export const credentialsOf = (clientId: string, clientSecret: string) =>
  Effect.orDie(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))

export const credentials = Effect.runSync(credentialsOf("invented-client-id", "invented-client-secret-0123456789"))

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

/** The shared source of one process of the fleet, over the common endpoint and store. */
export const member = (
  source: TokenSource.Service,
  store: TokenStore.Service,
  options: Partial<SharedTokenSource.Options> = {}
) =>
  Effect.zipRight(
    watchSleeps,
    SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials), ...options })
  ).pipe(Effect.provideService(TokenSource.TokenSource, source), Effect.provideService(TokenStore.TokenStore, store))

/** The number of running Web Crypto operations. They run in threads and take real time. */
let encrypting = 0

for (const name of ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const) {
  const original: (...args: Array<never>) => Promise<unknown> = crypto.subtle[name].bind(crypto.subtle)
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
