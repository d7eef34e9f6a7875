import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "../AccessTokenError.js"

/**
 * The variables that credentials were read from, for error messages. Not a property, because credentials are equal when
 * their ids and secrets are.
 */
export const variablesOf = new WeakMap<object, { readonly clientId: string; readonly clientSecret: string }>()

/** Why a value that matches is unusable. */
export type Rule = readonly [pattern: RegExp, reason: string]

/** Fails if a rule forbids one of the credentials. */
export const checkBy = (
  rules: ReadonlyArray<Rule>,
  credentials: { readonly clientId: string; readonly clientSecret: Redacted.Redacted }
): Effect.Effect<void, CredentialsError> => {
  const { clientId, clientSecret } = credentials
  for (const [field, value] of [["clientId", clientId], ["clientSecret", Redacted.value(clientSecret)]] as const) {
    const found = rules.find(([pattern]) => pattern.test(value))
    if (found !== undefined) {
      const variable = Option.fromNullable(variablesOf.get(credentials)?.[field])
      return new CredentialsError({ field, reason: found[1], variable })
    }
  }
  return Effect.void
}
