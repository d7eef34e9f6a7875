/**
 * The client's id and secret, checked once so that they can be sent as the specification wants: raw, with no encoding.
 *
 * @since 0.1.0
 */
import * as HttpBody from "@effect/platform/HttpBody"
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "./AccessTokenError.js"

/**
 * What marks credentials that were checked: no other value carries it.
 *
 * @see make
 *
 * @since 0.1.0
 * @category type ids
 */
export const TypeId = "~@store-api/core/ClientCredentials"

/**
 * The type of the mark of checked credentials.
 *
 * @see make
 *
 * @since 0.1.0
 * @category type ids
 */
export type TypeId = typeof TypeId

/**
 * Credentials that were checked: `make` and `fromConfig` are the only ways to have some. Two are equal when id and secret
 * are.
 *
 * @see make, fromConfig
 *
 * @since 0.1.0
 * @category models
 */
export interface ClientCredentials extends Options {
  /** The mark of credentials that were checked. */
  readonly [TypeId]: TypeId
}

/**
 * An id and a secret as they were given, not checked yet (the specification, "Token request").
 *
 * @see make
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The client's API key, as the store issued it: `client_id`. */
  readonly clientId: string
  /** The client's API secret, which printing does not show: `client_secret`. */
  readonly clientSecret: Redacted.Redacted
}

class Checked extends Data.Class<Options> implements ClientCredentials {
  readonly [TypeId] = TypeId
}

/**
 * Checks an id and a secret. Fails with `CredentialsError` when one is empty or holds what cannot be sent raw in a form
 * body (the specification, "Endpoints": no encoding): `&` (it separates the fields), control characters, anything beyond
 * ASCII. `+ / = % ~` and spaces go as they are.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { Redacted } from "effect"
 *
 * const credentials = ClientCredentials.make({
 *   clientId: "demo-client",
 *   clientSecret: Redacted.make("an invented secret")
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<ClientCredentials, CredentialsError> => {
  const { clientId, clientSecret } = options
  for (const [name, value] of fields(options)) {
    const reason = unsendable(value)
    if (reason !== undefined) {
      return Effect.fail(new CredentialsError({ field: name === "client_id" ? "clientId" : "clientSecret", reason }))
    }
  }
  return Effect.succeed(new Checked({ clientId, clientSecret }))
}

/**
 * Reads and checks the credentials anew each time it runs: give it to `TokenEndpoint` as `credentials`, and a secret that
 * changes in the configuration is used without a restart. What is missing or cannot be read is a `CredentialsError`.
 * Default: `STORE_API_CLIENT_ID` and `STORE_API_CLIENT_SECRET`.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layer({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.fromConfig({
 *     clientId: Config.string("SHOP_ID"),
 *     clientSecret: Config.redacted("SHOP_SECRET")
 *   })
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromConfig = (
  config: { readonly [K in keyof Options]: Config.Config<Options[K]> } = {
    clientId: Config.string("STORE_API_CLIENT_ID"),
    clientSecret: Config.redacted("STORE_API_CLIENT_SECRET")
  }
): Effect.Effect<ClientCredentials, CredentialsError> =>
  Effect.all({
    clientId: readable("clientId", config.clientId),
    clientSecret: readable("clientSecret", config.clientSecret)
  }).pipe(Effect.flatMap(make))

/**
 * The body of the token request (the specification, "Endpoints"; RFC 6749 §4.4.2): `grant_type`, `client_id` and
 * `client_secret` in this order, joined by `&`, not one byte encoded, as `application/x-www-form-urlencoded`. It holds the
 * secret in clear text.
 *
 * @example
 * ```ts
 * import { HttpClientRequest } from "@effect/platform"
 * import { ClientCredentials } from "@store-api/core"
 *
 * const request = (credentials: ClientCredentials.ClientCredentials) =>
 *   HttpClientRequest.post("https://auth.store.example/v1/oauth/accesstoken").pipe(
 *     HttpClientRequest.setBody(ClientCredentials.toBody(credentials))
 *   )
 * ```
 *
 * @since 0.1.0
 * @category conversions
 */
export const toBody = (credentials: ClientCredentials): HttpBody.Uint8Array =>
  HttpBody.text(
    ["grant_type=client_credentials", ...fields(credentials).map(([name, value]) => `${name}=${value}`)].join("&"),
    "application/x-www-form-urlencoded"
  )

/**
 * Returns what a server's words are searched for by `TokenResponse.refusal`, which drops those that repeat it: the secret,
 * and an id of at least 8 characters. A shorter id is likely to be a word that servers use.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { Redacted } from "effect"
 *
 * const isRepeated = (text: string, credentials: ClientCredentials.ClientCredentials) =>
 *   ClientCredentials.secrets(credentials).some((secret) => text.includes(Redacted.value(secret)))
 * ```
 *
 * @since 0.1.0
 * @category conversions
 */
export const secrets = ({ clientId, clientSecret }: ClientCredentials): ReadonlyArray<Redacted.Redacted> => [
  clientSecret,
  ...clientId.length < 8 ? [] : [Redacted.make(clientId)]
]

/**
 * Whether a server that form-decodes the body (RFC 6749, appendix B), as most do, reads other credentials than these: they
 * hold `+` or `%`.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const credentials = Effect.tap(ClientCredentials.fromConfig(), (credentials) =>
 *   ClientCredentials.changeWhenDecoded(credentials) ? Effect.logWarning("the secret holds + or %") : Effect.void)
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const changeWhenDecoded = (credentials: ClientCredentials): boolean =>
  fields(credentials).some(([, value]) => /[+%]/.test(value))

/** Where the secret is read: to be checked, and to make the body. */
const fields = ({ clientId, clientSecret }: Options) =>
  [["client_id", clientId], ["client_secret", Redacted.value(clientSecret)]] as const

/** Why a value cannot be sent raw, if it cannot: only printable ASCII without the separator can (RFC 6749, appendix A). */
const unsendable = (value: string): string | undefined => {
  if (value === "") return "is empty"
  if (/[\r\n]$/.test(value)) return "ends with a line break, which cannot be sent"
  if (value.includes("&")) return "holds &, which separates the fields of the request and cannot be sent raw"

  if (/[\x00-\x1f\x7f]/.test(value)) return "holds a control character, which cannot be sent raw"
  if (!/^[\x20-\x7e]+$/.test(value)) return "holds a character beyond ASCII, which cannot be sent raw"
  return undefined
}

const readable = <A>(field: CredentialsError["field"], config: Config.Config<A>): Effect.Effect<A, CredentialsError> =>
  Effect.mapError(config, (error) =>
    new CredentialsError({
      field,
      reason: ConfigError.isMissingDataOnly(error)
        ? "is missing from the configuration"
        : "cannot be read from the configuration"
    }))
