import * as Undici from "@effect/platform-node/Undici"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import { isLoopback } from "@store-api/core/AuthorizedHttpClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { unusable } from "./options.js"

export type Choice = URL | "env" | "none"

/**
 * Creates a dispatcher that uses the proxy, if there is one. It is destroyed with the scope. undici reads the
 * environment when the dispatcher is created.
 */
export const makeDispatcher = (
  proxy: Choice,
  options: Undici.EnvHttpProxyAgent.Options
): Effect.Effect<Undici.Dispatcher, ConfigurationError, Scope.Scope> => {
  const direct = makeScoped(() => new Undici.Agent(options))
  if (proxy === "none") return direct
  if (proxy !== "env") {
    return Effect.flatMap(
      checkUrl("http.proxy", proxy),
      ({ href }) =>
        bypassForLoopback(
          direct,
          makeScoped(() => new Undici.ProxyAgent({ ...options, uri: href }))
        )
    )
  }
  return Effect.suspend(() => {
    const variables = readVariables()
    if (variables.length === 0) return direct
    return Effect.zipRight(
      Effect.forEach(variables, ({ name, url }) => checkUrl(name, url)),
      bypassForLoopback(direct, makeScoped(() => new Undici.EnvHttpProxyAgent(options)))
    )
  })
}

const makeScoped = <A extends Undici.Dispatcher>(
  make: () => A
): Effect.Effect<A, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(make),
    (dispatcher) => Effect.promise(() => dispatcher.destroy())
  )

/**
 * Sends requests to this machine directly. Such a request may carry a secret in clear text, which a proxy must not see.
 * `NO_PROXY` cannot express this, because it has no address ranges.
 */
const bypassForLoopback = <R>(
  direct: Effect.Effect<Undici.Dispatcher, never, R>,
  proxied: Effect.Effect<Undici.Dispatcher, never, R>
): Effect.Effect<Undici.Dispatcher, never, R> =>
  Effect.zipWith(
    direct,
    proxied,
    (direct, proxied) =>
      proxied.compose((dispatch) => (options, handler) =>
        isDirect(String(options.origin))
          ? direct.dispatch(options, handler)
          : dispatch(options, handler)
      )
  )

const isDirect = (origin: string): boolean => Option.exists(parseUrl(origin), isLoopback)

const parseUrl = Option.liftThrowable((text: string) => new URL(text))

const readVariables = () =>
  [readVariable("HTTP_PROXY"), readVariable("HTTPS_PROXY")].filter(({ url }) => url !== "")

export const isInEnvironment = (): boolean => readVariables().length > 0

/** Returns the variable that undici uses: the lower-case one, even if it is empty. */
const readVariable = (name: "HTTP_PROXY" | "HTTPS_PROXY") => {
  const lower = process.env[name.toLowerCase()]
  return lower === undefined
    ? { name, url: process.env[name] ?? "" }
    : { name: name.toLowerCase(), url: lower }
}

/** Checks a proxy URL. undici's own error contains the URL with its password, and its SOCKS support is experimental. */
const checkUrl = (
  option: string,
  value: string | URL
): Effect.Effect<URL, ConfigurationError> =>
  Effect.try(() => {
    const url = new URL(value)
    decodeURIComponent(url.username)
    decodeURIComponent(url.password)
    return url
  }).pipe(
    Effect.filterOrFail(({ protocol }) => protocol === "http:" || protocol === "https:"),
    Effect.mapError(() =>
      unusable(
        option,
        "must be an http:// or https:// URL, a user name and password in it percent-encoded"
      )
    )
  )

/**
 * Describes the error of undici for a proxy that opened no tunnel, which is in the causes of the error of a request.
 * Returns undefined for another error.
 */
export const describeRefusal = (error: unknown): string | undefined => {
  if (!Predicate.isError(error)) return undefined
  const [, status] = /^Proxy response \((\d{3})\)/.exec(error.message) ?? []
  if (status === undefined) return describeRefusal(error.cause)
  const advice = status === "407" ? ": check the user name and password for the proxy" : ""
  return `The proxy refused the connection (${status})${advice}.`
}
