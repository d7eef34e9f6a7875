import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ConfigurationError, UntrustedOriginError } from "../../AccessTokenError.js"
import { baseUrl, parseUrl } from "../baseUrl.js"
import * as httpErrors from "../httpErrors.js"
import * as manualRedirect from "../manualRedirect.js"
import { checkKinds, composed, unusable } from "../options.js"

/** The origins that may receive the token. */
export interface TrustedOrigins {
  readonly origins: ReadonlyArray<string>
  /** Appends a relative URL to `apiUrl`. Fails if the request would go to an untrusted origin. */
  readonly resolve: (
    request: HttpClientRequest.HttpClientRequest
  ) => Effect.Effect<HttpClientRequest.HttpClientRequest, UntrustedOriginError>
}

export const make = (options: {
  readonly apiUrl: string | URL
  readonly allowInsecure?: boolean | undefined
  readonly trustedOrigins?: ReadonlyArray<string | URL> | undefined
}): Effect.Effect<TrustedOrigins, ConfigurationError> =>
  Effect.gen(function*() {
    const { allowInsecure, apiUrl, trustedOrigins = [] } = options
    yield* checkKinds(composed, options, { allowInsecure: "boolean" })
    const api = yield* baseUrl("apiUrl", apiUrl, allowInsecure)
    const others = yield* Effect.forEach(
      trustedOrigins,
      (origin) => baseUrl("client.trustedOrigins", origin, allowInsecure)
    )
    if (others.some(({ pathname }) => pathname !== "/")) {
      return yield* unusable("client.trustedOrigins", "must contain origins, without a path")
    }
    const origins = [api, ...others].map(({ origin }) => origin)
    return {
      origins,
      resolve: (request) => {
        const trimmed = trim(request.url)
        const url = scheme.test(trimmed) ? trimmed : append(api.href, trimmed)
        const resolved = url === request.url ? request : HttpClientRequest.setUrl(request, url)
        // A URL that starts with an origin and a slash has that origin. This avoids parsing most URLs.
        if (url.startsWith(`${api.origin}/`)) return Effect.succeed(resolved)
        const origin = originOf(url)
        return absolute.test(url) && origins.includes(origin)
          ? Effect.succeed(resolved)
          : new UntrustedOriginError({ origin, trusted: origins })
      }
    }
  })

const scheme = /^[a-z][a-z\d+.-]*:/i

/** Requires the slashes: a browser resolves `https:path` relative to the URL of the page. */
const absolute = /^https?:\/\//i

/** Returns the origin of a URL, or a description that equals no origin. */
export const originOf = (text: string): string => {
  const url = Option.getOrUndefined(parseUrl(text))
  if (url === undefined) return "an invalid URL"
  return url.origin === "null" ? `a ${url.protocol} URL` : url.origin
}

/** Removes what the parser of URLs ignores at both ends: spaces and control characters. */
const trim = (url: string): string =>
  isIgnored(url.at(0)) || isIgnored(url.at(-1))
    ? url.replace(/^[\0- ]+/, "").replace(/[\0- ]+$/, "")
    : url

const isIgnored = (character: string | undefined): boolean =>
  character !== undefined && character <= " "

/** Appends a relative URL, with one slash between the two paths. */
const append = (api: string, url: string): string => {
  if (api.endsWith("/")) return api + url.replace(/^\//, "")
  return /^([/?#]|$)/.test(url) ? api + url : `${api}/${url}`
}

/**
 * Returns a client that sends requests only to the given origins. The check comes after everything that wraps this
 * client, including `followRedirects`, which bypasses `mapRequest`. `fetch` follows no redirects.
 */
export const boundClient = (
  client: HttpClient.HttpClient,
  origins: ReadonlyArray<string>
): Effect.Effect<HttpClient.HttpClient> =>
  Effect.map(
    manualRedirect.make,
    (withoutRedirects) =>
      HttpClient.transform(client, (response, request) => {
        const origin = originOf(request.url)
        if (origins.includes(origin)) return withoutRedirects(response)
        return Effect.fail(
          httpErrors.make(
            "InvalidUrl",
            request,
            new UntrustedOriginError({ origin, trusted: origins })
          )
        )
      })
  )
