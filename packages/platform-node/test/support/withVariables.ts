import { Effect } from "effect"

/** With these variables in the environment of this process, and without them afterwards. */
export const withVariables = (changes: Readonly<Record<string, string>>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Object.assign(process.env, changes)),
    () => effect,
    () => Effect.sync(() => Object.keys(changes).forEach((name) => Reflect.deleteProperty(process.env, name)))
  )
