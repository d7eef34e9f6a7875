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
 * @since 0.1.0
 * @category type ids
 */
export const TypeId = "~@store-api/core/ClientCredentials"

/**
 * @since 0.1.0
 * @category type ids
 */
export type TypeId = typeof TypeId

/**
 * Credentials that were checked: `make` and `fromConfig` are the only ways to have some. Two are equal when id and secret
 * are.
 *
 * @since 0.1.0
 * @category models
 */
export interface ClientCredentials extends Options {
  readonly [TypeId]: TypeId
}

/**
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

class Checked extends Data.Class<Options> implements ClientCredentials {
  readonly [TypeId] = TypeId
}

/**
 * Checks an id and a secret. Fails with `CredentialsError` when one is empty or holds what cannot be sent raw in a form
 * body: `&` (it separates the fields), control characters, anything beyond ASCII. `+ / = % ~` and spaces go as they are.
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
 * The body of the token request (specification, "Endpoints"): the three fields in this order, joined by `&`, not one byte
 * encoded.
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
 * What must not be repeated to anyone: the secret, and the id, which is the other half of the credentials.
 *
 * @since 0.1.0
 * @category conversions
 */
export const secrets = ({ clientId, clientSecret }: ClientCredentials): ReadonlyArray<Redacted.Redacted> => [
  clientSecret,
  Redacted.make(clientId)
]

/**
 * Whether a server that form-decodes the body, as most do, reads other credentials than these: they hold `+` or `%`.
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
