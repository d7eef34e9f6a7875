import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "../AccessTokenError.js"

/**
 * The variables that credentials were read from, for error messages. Not a property, because credentials are equal when
 * their ids and secrets are.
 */
export const variablesOf = new WeakMap<
  object,
  { readonly clientId: string; readonly clientSecret: string }
>()

/** Why a value that matches is unusable. */
export type Rule = readonly [pattern: RegExp, reason: string]

/** Fails if one of the credentials, which may come from JavaScript, is missing, not a text, or forbidden by a rule. */
export const checkBy = (
  rules: ReadonlyArray<Rule>,
  credentials:
    | { readonly clientId?: unknown; readonly clientSecret?: unknown }
    | null
    | undefined
): Effect.Effect<void, CredentialsError> => {
  const given = credentials ?? {}
  const { clientId, clientSecret } = given
  const secret = Redacted.isRedacted(clientSecret)
    ? Redacted.value(clientSecret)
    : clientSecret
  const problems = {
    clientId: problemOf(clientId, rules),
    clientSecret: typeof clientSecret === "string"
      ? "must be wrapped with Redacted.make"
      : problemOf(secret, rules)
  }
  const field = problems.clientId === undefined ? "clientSecret" : "clientId"
  const reason = problems[field]
  if (reason === undefined) return Effect.void
  return new CredentialsError({ field, reason, variable: variablesOf.get(given)?.[field] })
}

/** The end of a sentence, or undefined. */
const problemOf = (text: unknown, rules: ReadonlyArray<Rule>): string | undefined => {
  if (text === undefined) return "is missing"
  return typeof text === "string"
    ? rules.find(([pattern]) => pattern.test(text))?.[1]
    : "must be a text"
}
