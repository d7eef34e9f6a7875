/**
 * How the client credentials become a token request: as the specification says, or as another OAuth 2.0 endpoint needs
 * it.
 *
 * @since 1.0.0
 */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { CredentialsError } from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import { checked, type Rule } from "./internal/credentials.js"
import { maxLife } from "./internal/lifetime.js"

/**
 * A way to request tokens. Use one of the constants and functions of this module.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface TokenRequest {
  /**
   * Names what the token is for, such as its scope. Processes share a token only if this text, the URL of the endpoint
   * and the client id are equal. `Redacted` if it contains a secret parameter.
   */
  readonly identity: string | Redacted.Redacted
  /**
   * Returns the request for one attempt. The endpoint sets its URL, and adds `Accept: application/json` and a
   * `User-Agent`.
   */
  readonly request: (
    credentials: ClientCredentials
  ) => Effect.Effect<HttpClientRequest.HttpClientRequest, CredentialsError>
  /**
   * What the library knows of its own requests. They can be made early, to check the credentials.
   *
   * @internal
   */
  readonly own?: {
    /** The default of `maxLifetime`, in milliseconds. */
    readonly maxLife?: number | undefined
    /** Why the parameters are unusable, as the end of a sentence. */
    readonly problem?: string | undefined
    /** What it sends besides the client secret that the endpoint must not repeat. */
    readonly secrets?: ((credentials: ClientCredentials) => ReadonlyArray<Redacted.Redacted>) | undefined
    /** Whether servers differ in how they read these credentials. */
    readonly isAmbiguous?: ((credentials: ClientCredentials) => boolean) | undefined
  }
}

/**
 * Parameters for the body of a token request, such as `scope`, `audience` or `resource`. A list sends its parameter
 * once per item. `undefined` and `""` are omitted, because some servers refuse an empty `scope`. A `grant_type`
 * replaces `client_credentials`. Not allowed: `client_id`, `client_secret` and `client_assertion`, because the library
 * adds the credentials.
 *
 * @see clientSecretPost, clientSecretBasic
 *
 * @since 1.0.0
 * @category models
 */
export interface Parameters {
  readonly [name: string]: Parameter | ReadonlyArray<Parameter> | undefined
}

type Parameter = string | Redacted.Redacted

/**
 * The request of the specification ("Endpoints"), which is the default: the fields `grant_type`, `client_id` and
 * `client_secret`, in this order and unencoded. `acquire` fails with `CredentialsError` for a value that cannot be sent
 * unencoded: one with `&`, which separates fields, a control character, or a character beyond ASCII.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://auth.store.example",
 *   credentials: ClientCredentials.fromConfig(),
 *   request: TokenRequest.specification // the default
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const specification: TokenRequest = {
  identity: "",
  request: (credentials) =>
    Effect.map(
      checked(credentials, [
        ...always,
        [/&/, "contains &, which cannot be sent unencoded"],
        [/[^\x20-\x7e]/, "contains a character beyond ASCII, which cannot be sent unencoded"]
      ]),
      ({ clientId, clientSecret }) =>
        post(`grant_type=client_credentials&client_id=${clientId}&client_secret=${Redacted.value(clientSecret)}`)
    ),
  own: { maxLife, isAmbiguous: ({ clientId, clientSecret }) => /[+%]/.test(clientId + Redacted.value(clientSecret)) }
}

/**
 * The request with the client id and secret in the body, form-encoded (RFC 6749 §2.3.1, `client_secret_post`), and the
 * given parameters. `acquire` fails with `CredentialsError` if a value contains a control character.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://tenant.auth.example",
 *   path: "/oauth/token",
 *   credentials: ClientCredentials.fromConfig(),
 *   request: TokenRequest.clientSecretPost({ audience: "https://api.example" })
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const clientSecretPost = (parameters: Parameters = {}): TokenRequest => {
  const fields = fieldsOf(parameters)
  return withParameters(
    fields,
    ({ clientId, clientSecret }) => post(form([...fields, ["client_id", clientId], ["client_secret", clientSecret]]))
  )
}

/**
 * The request with the client id and secret in an `Authorization: Basic` header (RFC 6749 §2.3.1,
 * `client_secret_basic`), and the given parameters in the body. `acquire` fails with `CredentialsError` if a value
 * contains a control character.
 *
 * Servers differ in whether they form-decode the header. So only the characters are encoded that decoding would change:
 * `%`, `+`, those beyond ASCII, and `:` in the id. Both kinds of servers then read any other id and secret correctly.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://login.example/realms/shop/protocol/openid-connect/token",
 *   path: "", // `authUrl` is the whole URL
 *   credentials: ClientCredentials.fromConfig(),
 *   request: TokenRequest.clientSecretBasic({ scope: "orders:read orders:write" })
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const clientSecretBasic = (parameters: Parameters = {}): TokenRequest => {
  const fields = fieldsOf(parameters)
  const encoded = ({ clientId, clientSecret }: ClientCredentials) =>
    [
      clientId.replace(/[%+:]|[^\x00-\x7f]+/g, encodeURIComponent),
      Redacted.value(clientSecret).replace(/[%+]|[^\x00-\x7f]+/g, encodeURIComponent)
    ] as const
  return withParameters(
    fields,
    (credentials) => HttpClientRequest.basicAuth(post(form(fields)), ...encoded(credentials)),
    {
      isAmbiguous: ({ clientId, clientSecret }) =>
        /[%+:]|[^\x00-\x7f]/.test(clientId) || /[%+]|[^\x00-\x7f]/.test(Redacted.value(clientSecret)),
      secrets: (credentials) => [Redacted.make(encoded(credentials)[1])]
    }
  )
}

/**
 * Creates any other token request, for example one with a signed assertion (`private_key_jwt`, RFC 7523 §2.2).
 * `request` runs for every attempt, because an assertion is valid only once. The endpoint sets the URL of its result,
 * and adds `Accept: application/json` and a `User-Agent`.
 *
 * `identity` must name everything that changes the token, headers included. Otherwise processes that want different
 * tokens share one. To add a header to another request, copy that request: then its secrets stay known.
 *
 * @example
 * ```ts
 * import { HttpClientRequest } from "@effect/platform"
 * import { TokenRequest } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const basic = TokenRequest.clientSecretBasic()
 *
 * const ofTenant = (tenant: string): TokenRequest.TokenRequest => ({
 *   ...basic,
 *   identity: `tenant ${tenant}`,
 *   request: (credentials) => Effect.map(basic.request(credentials), HttpClientRequest.setHeader("x-tenant", tenant))
 * })
 *
 * const withoutBody = TokenRequest.make({
 *   identity: "orders",
 *   request: ({ clientId }) => Effect.succeed(HttpClientRequest.post("").pipe(HttpClientRequest.bearerToken(clientId)))
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (options: Pick<TokenRequest, "identity" | "request">): TokenRequest => ({
  identity: options.identity,
  request: options.request
})

type Field = readonly [name: string, value: Parameter]

/** The fields of the body. */
const fieldsOf = (parameters: Parameters): ReadonlyArray<Field> => {
  // A caller without types may pass a text.
  const record: Parameters = isPlain(parameters) ? parameters : { "": "not a record" }
  const fields = Object.entries(record).flatMap(([name, values]) =>
    [values].flat().flatMap((value): ReadonlyArray<Field> =>
      value === undefined || reveal(value) === "" ? [] : [[name, value]]
    )
  )
  const hasGrantType = fields.some(([name]) => name === "grant_type")
  return hasGrantType ? fields : [["grant_type", "client_credentials"], ...fields]
}

/** A `Map` or `URLSearchParams` of a caller without types has no entries, and would be sent as nothing. */
const isPlain = (parameters: Parameters): boolean =>
  Predicate.isReadonlyRecord(parameters) && (Object.getPrototypeOf(parameters) ?? Object.prototype) === Object.prototype

/** Some servers do not read `+` as a space, so a space becomes `%20`. */
const form = (fields: ReadonlyArray<Field>): string =>
  fields.map((field) => field.map((text) => encodeURIComponent(reveal(text))).join("=")).join("&")

const reveal = (text: Parameter): string => Redacted.isRedacted(text) ? Redacted.value(text) : text

const withParameters = (
  fields: ReadonlyArray<Field>,
  build: (credentials: ClientCredentials) => HttpClientRequest.HttpClientRequest,
  { isAmbiguous, secrets }: NonNullable<TokenRequest["own"]> = {}
): TokenRequest => {
  // Does not depend on the order of the parameters, nor on how the credentials are sent.
  const identity = `[${fields.map((field) => JSON.stringify(field.map(reveal))).sort().join()}]`
  const secretFields = fields.flatMap(([, value]) => Redacted.isRedacted(value) ? [value] : [])
  return {
    identity: secretFields.length === 0 ? identity : Redacted.make(identity),
    request: (credentials) => Effect.map(checked(credentials, always), build),
    own: {
      isAmbiguous,
      secrets: (credentials) => [...secretFields, ...secrets?.(credentials) ?? []],
      problem: problemOf(fields)
    }
  }
}

const problemOf = (fields: ReadonlyArray<Field>): string | undefined => {
  if (fields.some(([name, value]) => name === "" || !Predicate.isString(reveal(value)))) {
    return "must have a record of texts as its parameters"
  }
  if (fields.some(([name]) => /^client_(id|secret|assertion)$/.test(name))) {
    return "must not have client credentials among its parameters"
  }
  const isUnusable = fields.flat().some((text) => unusable.test(reveal(text)))
  return isUnusable ? "must not have control characters in its parameters" : undefined
}

const post = (body: string): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.bodyUint8Array(
    HttpClientRequest.post(""),
    new TextEncoder().encode(body),
    "application/x-www-form-urlencoded"
  )

/** Control characters (RFC 6749, appendix A), and lone surrogates, for which `encodeURIComponent` throws. */
const unusable = /[\p{Cc}\p{Cs}]/u

/** Why no request of the library carries a value. */
const always: ReadonlyArray<Rule> = [
  [/[\r\n]$/, "ends with a line break, which cannot be sent"],
  [unusable, "contains a control character, which cannot be sent"]
]
