/**
 * How the client credentials become a token request: as the specification says, or as another OAuth 2.0 endpoint needs
 * it.
 *
 * @since 1.0.0
 */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import { checkBy, type Rule } from "./internal/credentials.js"
import { maxLife } from "./internal/lifetime.js"

/**
 * A way to request tokens. Use one of the constants and functions of this module, or copy one and replace a field.
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
   * Returns the request for one attempt. The endpoint sets its URL, keeps its query, which no span shows, and adds
   * `Accept: application/json` and a `User-Agent`.
   *
   * If the endpoint answers with an error, its text is dropped when it repeats a header or a parameter of this request
   * that has at least 8 characters. Not counted are the client id, the headers `Accept`, `Content-Type` and
   * `User-Agent`, and parameters whose name ends in `type`, such as `grant_type`. Parameters are those of the URL, and
   * of a body that is a form or JSON.
   */
  readonly request: (
    credentials: ClientCredentials
  ) => Effect.Effect<HttpClientRequest.HttpClientRequest, CredentialsError>
  /**
   * The longest lifetime of a token, unless the endpoint has an option `maxLifetime`. More than zero, at most a year.
   * Default 24 hours, because some providers bill tokens. 60 minutes for the request of the specification.
   */
  readonly maxLifetime?: Duration.DurationInput | undefined
  /**
   * The type that the token must have. `Bearer`, the default, accepts every `token_type` but DPoP, MAC and PoP. With
   * `DPoP` (RFC 9449), requests with the token need a proof, and a token of another type is a `TokenResponseError`.
   */
  readonly tokenType?: "Bearer" | "DPoP" | undefined
  /**
   * The things to check if the server refuses the client, as the message names them: "the client id and the API key".
   * It must not contain a secret. Default "the client id and secret".
   */
  readonly authentication?: string | undefined
  /**
   * Why the request is unusable whatever the credentials, as the end of a sentence: "must have a scope". Then the layer
   * fails with `ConfigurationError` when it is built. It must not contain a secret. Default none.
   */
  readonly problem?: string | undefined
  /**
   * Fails if the request cannot carry the credentials. Runs when a layer is built with a client id and secret, and must
   * send nothing. Default: the credentials are checked only when `request` runs.
   */
  readonly checkCredentials?:
    | ((credentials: ClientCredentials) => Effect.Effect<unknown, CredentialsError>)
    | undefined
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
  maxLifetime: maxLife,
  checkCredentials: (credentials) => checkBy(unencodedRules, credentials),
  request: (credentials) =>
    Effect.map(checkBy(unencodedRules, credentials), () => {
      const { clientId, clientSecret } = credentials
      return post(
        `grant_type=client_credentials&client_id=${clientId}&client_secret=${
          Redacted.value(clientSecret)
        }`
      )
    })
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
    (credentials) => checkBy(encodedRules, credentials),
    ({ clientId, clientSecret }) =>
      Effect.succeed(
        post(form([...fields, ["client_id", clientId], ["client_secret", clientSecret]]))
      )
  )
}

/**
 * The request with the client id and secret in an `Authorization: Basic` header (RFC 6749 §2.3.1,
 * `client_secret_basic`), and the given parameters in the body. `acquire` fails with `CredentialsError` if a value
 * contains a control character.
 *
 * Servers differ in whether they form-decode the header. Only characters that form decoding would change are encoded:
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
  return withParameters(
    fields,
    (credentials) => checkBy(encodedRules, credentials),
    ({ clientId, clientSecret }) =>
      Effect.succeed(HttpClientRequest.basicAuth(
        post(form(fields)),
        clientId.replace(/[%+:]|[^\x00-\x7f]+/g, encodeURIComponent),
        Redacted.value(clientSecret).replace(/[%+]|[^\x00-\x7f]+/g, encodeURIComponent)
      ))
  )
}

/**
 * The request with an assertion instead of a secret (RFC 7523 §2.2), and the given parameters: a JWT that the client
 * signs (`private_key_jwt`), or a token that a platform gives to the workload. A parameter `client_assertion_type`
 * replaces that of a JWT. The client secret is not sent, so it may be the private key that signs. It then also seals
 * shared tokens. Without one, use `ClientCredentials.withoutSecret`.
 *
 * `assertion` runs for each attempt. A function that signs a new assertion each time sends none twice. One that reads a
 * file sends the same assertion until the file is replaced. A server that accepts each assertion only once refuses the
 * second request.
 *
 * `acquire` fails with `CredentialsError` if the assertion is empty, or not `Redacted`.
 *
 * @example
 * ```ts
 * import { FileSystem } from "@effect/platform"
 * import { AccessTokenError, ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 * import { Effect, Redacted } from "effect"
 *
 * // A platform writes a new token to this file before the old one expires.
 * const source = Effect.map(FileSystem.FileSystem, ({ readFileString }) =>
 *   TokenEndpoint.layer({
 *     authUrl: "https://login.example/tenant/oauth2/v2.0/token",
 *     path: "",
 *     credentials: ClientCredentials.withoutSecret("demo-client"),
 *     request: TokenRequest.clientAssertion(() =>
 *       readFileString("/var/run/secrets/token").pipe(
 *         Effect.map((token) => Redacted.make(token.trim())),
 *         Effect.mapError(() =>
 *           new AccessTokenError.CredentialsError({ field: "clientAssertion", reason: "cannot be read from its file" })
 *         )
 *       )
 *     )
 *   }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const clientAssertion = (
  assertion: (
    credentials: ClientCredentials
  ) => Effect.Effect<Redacted.Redacted, CredentialsError>,
  parameters: Parameters = {}
): TokenRequest => {
  const jwt = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
  const fields = fieldsOf({ client_assertion_type: jwt, ...parameters })
  const build: TokenRequest["request"] = (credentials) =>
    Effect.gen(function*() {
      const value = yield* assertion(credentials)
      const text = Redacted.isRedacted(value) ? Redacted.value(value) : undefined
      if (typeof text !== "string" || text === "") {
        const reason = text === "" ? "is empty" : "must be wrapped with Redacted.make"
        return yield* new CredentialsError({ field: "clientAssertion", reason })
      }
      return post(form([
        ...fields,
        ["client_id", credentials.clientId],
        ["client_assertion", text]
      ]))
    })
  const authentication =
    "the client id, the assertion (its key, audience and lifetime, and whether it was sent before), " +
    "and the clock"
  return withParameters(fields, checkId, build, authentication)
}

/**
 * The request with the client id alone, and the given parameters, for a client that its TLS certificate authenticates
 * (RFC 8705 §2). The HTTP client sends the certificate, such as `NodeHttp` with `cert` and `key`.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://mtls.auth.example",
 *   path: "/oauth2/token",
 *   credentials: ClientCredentials.withoutSecret("demo-client"),
 *   request: TokenRequest.clientId({ scope: "orders:read" })
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const clientId = (parameters: Parameters = {}): TokenRequest => {
  const fields = fieldsOf(parameters)
  const build: TokenRequest["request"] = ({ clientId }) =>
    Effect.succeed(post(form([...fields, ["client_id", clientId]])))
  const authentication =
    "the client id, and that the HTTP client sends the certificate that the server knows"
  return withParameters(fields, checkId, build, authentication)
}

/**
 * Creates any other token request, for example one with a signed assertion (`private_key_jwt`, RFC 7523 §2.2).
 * `request` runs for every attempt, because an assertion may be valid only once.
 *
 * `identity` must name everything that changes the token, headers included. Otherwise processes that want different
 * tokens share one. To add a header to another request, copy that request, so that its checks still run.
 *
 * @example
 * ```ts
 * import { HttpClientRequest } from "@effect/platform"
 * import { TokenRequest } from "@store-api/core"
 * import { Effect, Redacted } from "effect"
 *
 * const basic = TokenRequest.clientSecretBasic()
 *
 * const ofTenant = (tenant: string): TokenRequest.TokenRequest => ({
 *   ...basic,
 *   identity: `tenant ${tenant}`,
 *   request: (credentials) => Effect.map(basic.request(credentials), HttpClientRequest.setHeader("x-tenant", tenant))
 * })
 *
 * // A secret of its own, in a header. The client secret is not sent.
 * const withApiKey = (apiKey: Redacted.Redacted) =>
 *   TokenRequest.make({
 *     identity: apiKey,
 *     request: () =>
 *       Effect.succeed(
 *         HttpClientRequest.post("").pipe(HttpClientRequest.setHeader("x-api-key", Redacted.value(apiKey)))
 *       )
 *   })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (options: TokenRequest): TokenRequest => options

type Field = readonly [name: string, value: Parameter]

/** The fields of the body. */
const fieldsOf = (parameters: Parameters): ReadonlyArray<Field> => {
  // A text, a `Map` or `URLSearchParams` of a caller without types would be sent as nothing.
  const isRecord = Object.prototype.toString.call(parameters) === "[object Object]"
  const fields = Object.entries(isRecord ? parameters : { "": "not a record" }).flatMap((
    [name, values]
  ) =>
    [values].flat().flatMap((value): ReadonlyArray<Field> =>
      value === undefined || reveal(value) === "" ? [] : [[name, value]]
    )
  )
  const hasGrantType = fields.some(([name]) => name === "grant_type")
  return hasGrantType ? fields : [["grant_type", "client_credentials"], ...fields]
}

/** Some servers do not read `+` as a space, so a space becomes `%20`. */
const form = (fields: ReadonlyArray<Field>): string =>
  fields.map((field) => field.map((text) => encodeURIComponent(reveal(text))).join("=")).join(
    "&"
  )

const reveal = (text: Parameter): string =>
  Redacted.isRedacted(text) ? Redacted.value(text) : text

const withParameters = (
  fields: ReadonlyArray<Field>,
  checkCredentials: (credentials: ClientCredentials) => Effect.Effect<void, CredentialsError>,
  build: TokenRequest["request"],
  authentication?: string
): TokenRequest => {
  // Does not depend on the order of the parameters, nor on how the credentials are sent.
  const identity = `[${
    fields.map((field) => JSON.stringify(field.map(reveal))).sort().join()
  }]`
  const isSecret = fields.some(([, value]) => Redacted.isRedacted(value))
  return {
    identity: isSecret ? Redacted.make(identity) : identity,
    problem: problemOf(fields),
    authentication,
    checkCredentials,
    request: (credentials) =>
      Effect.flatMap(checkCredentials(credentials), () => build(credentials))
  }
}

const problemOf = (fields: ReadonlyArray<Field>): string | undefined => {
  if (fields.some(([name, value]) => name === "" || typeof reveal(value) !== "string")) {
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

/** Which values no request can carry. */
const idRules: ReadonlyArray<Rule> = [
  [/[\r\n]$/, "ends with a line break, which cannot be sent"],
  [unusable, "contains a control character, which cannot be sent"]
]

/** Checks the id alone. The secret is not sent. */
const checkId = ({ clientId }: ClientCredentials): Effect.Effect<void, CredentialsError> =>
  checkBy(idRules, { clientId, clientSecret: Redacted.make("") })

/** Which credentials a request with encoded ones cannot carry. */
const encodedRules: ReadonlyArray<Rule> = [[/^$/, "is empty"], ...idRules]

/** Which credentials the request of the specification cannot carry. */
const unencodedRules: ReadonlyArray<Rule> = [
  ...encodedRules,
  [/&/, "contains &, which cannot be sent unencoded"],
  [/[^\x20-\x7e]/, "contains a character beyond ASCII, which cannot be sent unencoded"]
]
