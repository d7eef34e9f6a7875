import { ConfigError, ConfigProvider, ConfigProviderPathPatch, Effect, HashSet } from "effect"

/** A configuration in which one variable cannot be read, as when a secret store fails. Every other variable is `x`. */
export const unreadable = (variable: string, message: string): ConfigProvider.ConfigProvider =>
  ConfigProvider.fromFlat(ConfigProvider.makeFlat({
    load: (path, primitive) =>
      path.join() === variable
        ? Effect.fail(ConfigError.Unsupported([...path], message))
        : Effect.map(primitive.parse("x"), (value) => [value]),
    enumerateChildren: () => Effect.succeed(HashSet.empty()),
    patch: ConfigProviderPathPatch.empty
  }))
