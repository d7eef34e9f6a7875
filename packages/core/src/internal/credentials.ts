import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "../AccessTokenError.js"

/**
 * The variables that credentials were read from, for error messages. Not a property, because credentials are equal when
 * their ids and secrets are.
 */
export const variablesOf = new WeakMap<object, { readonly clientId: string; readonly clientSecret: string }>()

/** Why a value that matches is unusable. */
export type Rule = readonly [pattern: RegExp, reason: string]

/** The problem of a credential, as the end of a sentence. */
interface Problem {
  readonly field: CredentialsError["field"]
  readonly reason: string
}

/** Returns the first problem of credentials, which may come from JavaScript. */
export const problemOf = (credentials: unknown, rules: ReadonlyArray<Rule> = []): Problem | undefined => {
  const { clientId, clientSecret }: { readonly [field: string]: unknown } = Predicate.isReadonlyRecord(credentials)
    ? credentials
    : {}
  const idProblem = problemOfText(clientId, rules)
  if (idProblem !== undefined) return { field: "clientId", reason: idProblem }
  const secretProblem = Predicate.isString(clientSecret)
    ? "must be wrapped with Redacted.make"
    : problemOfText(Redacted.isRedacted(clientSecret) ? Redacted.value(clientSecret) : clientSecret, rules)
  return secretProblem === undefined ? undefined : { field: "clientSecret", reason: secretProblem }
}

const problemOfText = (text: unknown, rules: ReadonlyArray<Rule>): string | undefined => {
  if (text === undefined) return "is missing"
  return Predicate.isString(text) ? rules.find(([pattern]) => pattern.test(text))?.[1] : "must be a text"
}

/** Fails if a rule forbids one of the credentials. */
export const checkBy = (
  rules: ReadonlyArray<Rule>,
  credentials: { readonly clientId: string; readonly clientSecret: Redacted.Redacted }
): Effect.Effect<void, CredentialsError> => {
  const problem = problemOf(credentials, rules)
  if (problem === undefined) return Effect.void
  const { field, reason } = problem
  return new CredentialsError({ field, reason, variable: variablesOf.get(credentials)?.[field] })
}
