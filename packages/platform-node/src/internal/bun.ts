/** Bun replaces undici by a stub, also that of npm. Requests then go through the `fetch` of Bun. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { check, checkRecord } from "./options.js"
import * as proxy from "./proxy.js"

/** Those of `NodeHttp.Options`. */
interface Options {
  readonly connections?: unknown
  readonly proxy?: unknown
  readonly ca?: unknown
  readonly cert?: unknown
  readonly key?: unknown
  readonly dispatcher?: unknown
}

export const isRunning = (): boolean => "Bun" in globalThis

/** Provides a client over `fetch`. Fails if an option needs undici. */
export const layer = (
  options: Options
): Layer.Layer<HttpClient.HttpClient, ConfigurationError> =>
  Layer.unwrapEffect(Effect.as(checkOptions(options), FetchHttpClient.layer))

/** Bun reads the proxy variables itself. */
const checkOptions = (options: Options) =>
  Effect.gen(function*() {
    yield* checkRecord("http", options)
    const reason = "cannot be used on Bun, which replaces undici"
    const { proxy: choice = "env" } = options
    const isSameProxy = choice === "env" || (choice === "none" && !proxy.isInEnvironment())
    yield* check("http.proxy", isSameProxy, reason)
    for (const name of ["connections", "ca", "cert", "key", "dispatcher"] as const) {
      yield* check(`http.${name}`, options[name] === undefined, reason)
    }
  })
