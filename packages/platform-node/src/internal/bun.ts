/** Bun replaces undici by a stub, also that of npm. Requests then go through the `fetch` of Bun. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { check, checkRecord } from "./options.js"
import * as proxy from "./proxy.js"

/** The options that undici implements. Bun ignores them. */
const optionsOfUndici = ["connections", "ca", "cert", "key", "dispatcher"] as const

/** The names in `NodeHttp.Options`. `NodeHttp` passes them to `layer`. A name that is not here is an error there. */
type OptionName = typeof optionsOfUndici[number] | "proxy"

type Options<Name extends OptionName> = { readonly [name in Name]?: unknown }

export const isRunning = (): boolean => "Bun" in globalThis

/** Provides a client over `fetch`. Fails if an option needs undici. */
export const layer = <Name extends OptionName>(
  options: Options<Name>
): Layer.Layer<HttpClient.HttpClient, ConfigurationError> =>
  Layer.unwrapEffect(
    Effect.as(checkOptions(options), Layer.provide(FetchHttpClient.layer, currentFetch))
  )

/** A mock may replace the global `fetch` at any time. Effect 4 would read it only once. */
const currentFetch = Layer.succeed(
  FetchHttpClient.Fetch,
  (input, init) => globalThis.fetch(input, init)
)

/** Bun reads the proxy variables itself. */
const checkOptions = (options: Options<OptionName>) =>
  Effect.gen(function*() {
    yield* checkRecord("http", options)
    const reason = "cannot be used on Bun, which replaces undici"
    const { proxy: choice = "env" } = options
    const isSameProxy = choice === "env" || (choice === "none" && !proxy.isInEnvironment())
    yield* check("http.proxy", isSameProxy, reason)
    for (const name of optionsOfUndici) {
      yield* check(`http.${name}`, options[name] === undefined, reason)
    }
  })
