import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { ConfigurationError } from "../AccessTokenError.js"
import { checkKinds, composed, unusable } from "./options.js"

/** Not `URL.canParse`, which on Node 20 and 22 refuses host names beyond ASCII after some hundred calls. */
export const parseUrl = Option.liftThrowable((text: string) => new URL(text))

/** Whether the host is this machine, so that a secret may be sent without TLS (RFC 6761 §6.3, RFC 1122 §3.2.1.3). */
export const isLoopback = (url: URL): boolean =>
  /^((.*\.)?localhost|\[::1]|127(\.\d{1,3}){3})$/.test(url.hostname)

/** Checks the base URL of an option: absolute, with an optional path, and with a query only if that is allowed. */
export const baseUrl = (
  option: string,
  value: string | URL | undefined,
  allowInsecure: boolean | undefined,
  allowsQuery = false
): Effect.Effect<URL, ConfigurationError> => {
  const fail = (reason: string) => unusable(option, reason)
  if (value === undefined) return fail("is missing")
  // The `URL` of another realm is not an instance of this one.
  const text = Predicate.hasProperty(value, "href") ? value.href : value
  if (!Predicate.isString(text)) return fail("is not a URL that starts with https://")
  if (text.trim() === "") return fail("is empty")
  const url = Option.getOrUndefined(parseUrl(text))
  if (url === undefined) return fail("is not a URL that starts with https://")
  if (!/^https?:$/.test(url.protocol)) return fail("must be an https URL")
  if (url.username !== "" || url.password !== "") {
    return fail("must not contain a user name or password")
  }
  if (text.includes("#")) return fail("must not have a fragment")
  if (url.protocol === "http:" && allowInsecure !== true && !isLoopback(url)) {
    return new ConfigurationError({
      option,
      reason: "must be an https URL, or an http URL of this machine",
      permittedBy: "allowInsecure"
    })
  }
  return allowsQuery || !url.href.includes("?")
    ? Effect.succeed(url)
    : fail("must not have a query")
}

interface EndpointOptions {
  readonly authUrl: string | URL
  readonly path?: string | undefined
  readonly allowInsecure?: boolean | undefined
}

/**
 * The URL of a token endpoint: `authUrl` and `path`, or `authUrl` alone if `path` is empty. The query of both is kept
 * (RFC 6749 §3.2), if the request allows one.
 */
export const endpointUrl = (
  options: EndpointOptions,
  allowsQuery: boolean
): Effect.Effect<string, ConfigurationError> =>
  Effect.gen(function*() {
    const { allowInsecure, authUrl, path = "/v1/oauth/accesstoken" } = options
    yield* checkKinds(composed, options, { allowInsecure: "boolean" })
    const { href, origin, pathname, search } = yield* baseUrl(
      "authUrl",
      authUrl,
      allowInsecure,
      allowsQuery
    )
    if (path === "") return href
    const isPath = typeof path === "string" && /^(?![^?]*:\/\/)[!-"$-~]*$/.test(path)
    if (!isPath || (path.includes("?") && !allowsQuery)) {
      return yield* unusable("endpoint.path", "must be a path, without a query or a fragment")
    }
    const [, relative = "", query = ""] = /^\/*([^?]*)\??(.*)$/.exec(path) ?? []
    const base = withoutSlashes(pathname)
    const end = withoutSlashes(`/${relative}`)
    // A common mistake, which would look like a refusal.
    if (end !== "" && base.endsWith(end)) {
      return yield* unusable("authUrl", `must be the base URL, without /${relative}`)
    }
    const queries = [search.slice(1), query].filter((part) => part !== "")
    const suffix = queries.length === 0 ? "" : `?${queries.join("&")}`
    return `${origin}${base}/${relative}${suffix}`
  })

/** Without slashes at its end. */
const withoutSlashes = (url: string): string => url.replace(/\/+$/, "")
