import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ConfigurationError } from "../AccessTokenError.js"
import { baseUrl } from "./baseUrl.js"

/** Where the token may go. */
export interface TrustedOrigins {
  readonly origins: ReadonlyArray<string>
  /** Joins a relative URL to the API's. Returns undefined when the request goes to another origin. */
  readonly resolve: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest | undefined
}

export const make = (options: {
  readonly apiUrl: string | URL
  readonly allowInsecure?: boolean | undefined
  readonly trustedOrigins?: ReadonlyArray<string | URL> | undefined
}): Effect.Effect<TrustedOrigins, ConfigurationError> =>
  Effect.gen(function*() {
    const allowInsecure = options.allowInsecure ?? false
    const api = yield* baseUrl("apiUrl", options.apiUrl, allowInsecure)
    const others = yield* Effect.forEach(options.trustedOrigins ?? [], (origin) =>
      Effect.filterOrFail(
        baseUrl("trustedOrigins", origin, allowInsecure),
        ({ pathname }) => pathname === "/",
        () => new ConfigurationError({ option: "trustedOrigins", reason: "must hold origins, without a path" })
      ))
    const origins = [api, ...others].map(({ origin }) => origin)
    return {
      origins,
      resolve: (request) => {
        // A URL that starts with an origin and its slash is of that origin, whatever follows: most need no parsing.
        if (request.url.startsWith(`${api.origin}/`)) return request
        if (!scheme.test(request.url)) return join(api.href, request)
        return absolute.test(request.url) && origins.includes(originOf(request.url)) ? request : undefined
      }
    }
  })

const scheme = /^[a-z][a-z\d+.-]*:/i

/** Without its slashes, a URL is relative to a page where there is one. */
const absolute = /^https?:\/\//i

const parse = Option.liftThrowable((url: string) => new URL(url))

/** The origin of a URL; of one that has none, nothing that could be trusted. */
export const originOf = (url: string): string =>
  Option.match(parse(url), {
    onNone: () => "an invalid URL",
    onSome: ({ origin, protocol }) => origin === "null" ? `a ${protocol} URL` : origin
  })

/** Joins a relative URL to the API's, as `prependUrl` does, and with a slash where both lack one. */
const join = (
  api: string,
  request: HttpClientRequest.HttpClientRequest
): HttpClientRequest.HttpClientRequest => {
  const needsSlash = !api.endsWith("/") && !/^([/?#]|$)/.test(request.url)
  return HttpClientRequest.prependUrl(request, needsSlash ? `${api}/` : api)
}
