/** The fields of a token response that `AccessToken` has no field for. */
import * as Redacted from "effect/Redacted"

export type Extra = Redacted.Redacted<{ readonly [name: string]: unknown }>

/** A token without further fields. One value for all tokens, because `Equal` compares it by reference. */
export const none: Extra = /* @__PURE__ */ Redacted.make({})

/** Does not look inside, because a schema of `Redacted` would make another value. */
export const isExtra = (value: unknown): value is Extra => Redacted.isRedacted(value)
