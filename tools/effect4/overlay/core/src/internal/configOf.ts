import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** Combines configurations. The error names every one that is missing. `Config.all` would name only the first. */
export const configOf = <A extends Readonly<Record<string, unknown>>>(
  configs: { readonly [K in keyof A]: Config.Config<A[K]> }
): Config.Config<A> =>
  Config.mapEffect(Config.all(Record.map(configs, (config) => Config.option(config))), (found) => {
    const missing = Object.keys(found).filter((key) => Option.isNone(found[key] ?? Option.none()))
    if (missing.length === 0) {
      // Each of them is there, under its own key.
      return Effect.succeed(Record.map(found, Option.getOrUndefined) as Readonly<Record<string, unknown>> as A)
    }
    const errors = Effect.forEach(missing, (key) => Effect.match(configs[key] ?? Effect.void, failures))
    return Effect.flatMap(errors, (errors) => Effect.fail(joined(errors.flat())))
  })

const failures = {
  onFailure: (error: Config.ConfigError): ReadonlyArray<Config.ConfigError> => [error],
  onSuccess: (): ReadonlyArray<Config.ConfigError> => []
}

const joined = (errors: ReadonlyArray<Config.ConfigError>): Config.ConfigError => {
  const [first, ...others] = errors.flatMap(({ cause }) => cause._tag === "SchemaError" ? [cause.issue] : [])
  return first === undefined
    ? errors[0] ?? new Config.ConfigError(new Schema.SchemaError(new SchemaIssue.MissingKey(undefined)))
    : new Config.ConfigError(new Schema.SchemaError(new SchemaIssue.Composite(Schema.String.ast, [first, ...others])))
}
