import * as Undici from "@effect/platform-node/Undici"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"

export type Choice = URL | "env" | "none"

/** The dispatcher that goes through the proxy, if there is one. Undici reads the environment, at this moment. */
export const dispatcher = (
  proxy: Choice,
  options: Undici.EnvHttpProxyAgent.Options
): Effect.Effect<Undici.Dispatcher, ConfigurationError> => {
  switch (proxy) {
    case "none":
      return Effect.sync(() => new Undici.Agent(options))
    case "env":
      return Effect.suspend(() => {
        const named = [fromEnvironment("HTTP_PROXY"), fromEnvironment("HTTPS_PROXY")].filter(({ url }) => url !== "")
        return Effect.zipRight(
          Effect.forEach(named, ({ name, url }) => usable(name, url), { discard: true }),
          Effect.sync(() => new Undici.EnvHttpProxyAgent(options))
        )
      })
    default:
      return Effect.map(usable("proxy", proxy), ({ href }) => new Undici.ProxyAgent({ ...options, uri: href }))
  }
}

/** The variable that undici takes: the lower-case one, even if it is empty. */
const fromEnvironment = (name: "HTTP_PROXY" | "HTTPS_PROXY") => {
  const lower = process.env[name.toLowerCase()]
  return lower === undefined ? { name, url: process.env[name] ?? "" } : { name: name.toLowerCase(), url: lower }
}

/** Undici throws what it cannot use, with the URL and its password in the error, and takes SOCKS as an experiment. */
const usable = (option: string, value: string | URL): Effect.Effect<URL, ConfigurationError> =>
  Effect.try(() => {
    const url = new URL(value)
    decodeURIComponent(url.username)
    decodeURIComponent(url.password)
    return url
  }).pipe(
    Effect.filterOrFail(({ protocol }) => protocol === "http:" || protocol === "https:"),
    Effect.mapError(() =>
      new ConfigurationError({
        option,
        reason: "must be an http:// or https:// URL, a user name and password in it percent-encoded"
      })
    )
  )
