import { ConfigProvider, Effect } from "effect"

/** A configuration in which one variable cannot be read, as when a secret store refuses; every other one is `x`. */
export const unreadable = (variable: string, message: string): ConfigProvider.ConfigProvider =>
  ConfigProvider.make((path) =>
    path.join() === variable
      ? Effect.fail(new ConfigProvider.SourceError({ message }))
      : Effect.succeed(ConfigProvider.makeValue("x"))
  )
