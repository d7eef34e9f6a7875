import * as Context from "effect/Context"

/**
 * Whether an acquisition renews a token that is still valid, and that no API rejected. Only then may a shared source
 * return the token to be replaced. In the context, so that a source that wraps another one cannot lose it.
 */
export class Renewal extends Context.Reference<Renewal>()("@store-api/core/internal/Renewal", {
  defaultValue: (): boolean => false
}) {}
