import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "../AccessTokenError.js"

/**
 * The variables that credentials were read from, for error messages. Not a property, because credentials are equal when
 * their ids and secrets are.
 */
export const variablesOf = new WeakMap<object, { readonly clientId: string; readonly clientSecret: string }>()

/** Why a value that matches is unusable. */
export type Rule = readonly [pattern: RegExp, reason: string]

/** Returns the credentials if no rule forbids one of them. */
export const checked = <A extends { readonly clientId: string; readonly clientSecret: Redacted.Redacted }>(
  credentials: A,
  rules: ReadonlyArray<Rule>
): Effect.Effect<A, CredentialsError> => {
  const { clientId, clientSecret } = credentials
  for (const [field, value] of [["clientId", clientId], ["clientSecret", Redacted.value(clientSecret)]] as const) {
    const found = rules.find(([pattern]) => pattern.test(value))
    if (found !== undefined) {
      const variable = variablesOf.get(credentials)?.[field]
      return new CredentialsError({ field, reason: found[1], variable })
    }
  }
  return Effect.succeed(credentials)
}
