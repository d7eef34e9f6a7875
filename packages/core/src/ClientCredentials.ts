/**
 * The client id and secret. They are checked when they are created, because the specification sends them unencoded.
 *
 * @since 1.0.0
 */
import * as Brand from "effect/Brand"
import * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "./AccessTokenError.js"

/**
 * An unchecked id and secret (the specification, "Token request").
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /** The API key that the store issued: `client_id`. */
  readonly clientId: string
  /** The API secret that the store issued: `client_secret`. */
  readonly clientSecret: Redacted.Redacted
}

/**
 * Checked credentials, as `make` and `fromConfig` return them. Two are equal when their ids and secrets are equal.
 *
 * @see make, fromConfig
 *
 * @since 1.0.0
 * @category models
 */
export type ClientCredentials = Options & Brand.Brand<"@store-api/core/ClientCredentials">

const checked = Brand.nominal<ClientCredentials>()

/**
 * Checks an id and a secret. Fails with `CredentialsError` if one is empty, or contains a character that cannot be sent
 * unencoded in a form body (the specification, "Endpoints"): `&`, which separates fields, control characters, and
 * characters beyond ASCII. `+ / = % ~` and spaces are sent unchanged.
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
 * @since 1.0.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<ClientCredentials, CredentialsError> => {
  const { clientId, clientSecret } = options
  for (const [field, value] of [["clientId", clientId], ["clientSecret", Redacted.value(clientSecret)]] as const) {
    const found = unsendable.find(([pattern]) => pattern.test(value))
    if (found !== undefined) return Effect.fail(new CredentialsError({ field, reason: found[1] }))
  }
  return Effect.succeed(checked(Data.struct({ clientId, clientSecret })))
}

/**
 * Reads `PREFIX_CLIENT_ID` and `PREFIX_CLIENT_SECRET` from the configuration each time it runs, and checks them. As the
 * option `credentials` it runs at each acquisition, so a new secret needs no restart. Fails with a `CredentialsError`
 * that names the variable if one is missing, unreadable, or cannot be sent. The default of `prefix` is `"STORE_API"`.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 *
 * const StoreAuthLive = NodeStoreAuth.layer({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.fromConfig("MY_STORE")
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const fromConfig = (prefix = "STORE_API"): Effect.Effect<ClientCredentials, CredentialsError> => {
  const variables = { clientId: `${prefix}_CLIENT_ID`, clientSecret: `${prefix}_CLIENT_SECRET` }
  return Effect.all({
    clientId: readable("clientId", Config.string(variables.clientId)),
    clientSecret: readable("clientSecret", Config.redacted(variables.clientSecret))
  }).pipe(
    Effect.flatMap(make),
    Effect.mapError((error) => new CredentialsError({ ...error, variable: Option.some(variables[error.field]) }))
  )
}

/** The reasons why a value cannot be sent: only printable ASCII without `&` can (RFC 6749, appendix A). */
const unsendable: ReadonlyArray<readonly [RegExp, reason: string]> = [
  [/^$/, "is empty"],
  [/[\r\n]$/, "ends with a line break, which cannot be sent"],
  [/&/, "holds &, which separates the fields of the request and cannot be sent raw"],
  [/[\x00-\x1f\x7f]/, "holds a control character, which cannot be sent raw"],
  [/[^\x20-\x7e]/, "holds a character beyond ASCII, which cannot be sent raw"]
]

const readable = <A>(field: CredentialsError["field"], config: Config.Config<A>): Effect.Effect<A, CredentialsError> =>
  Effect.matchEffect(Config.option(config), {
    onFailure: () => new CredentialsError({ field, reason: "cannot be read from the configuration" }),
    onSuccess: Option.match({
      onNone: () => Effect.fail(new CredentialsError({ field, reason: "is missing from the configuration" })),
      onSome: Effect.succeed
    })
  })
