/**
 * The client's id and secret, checked once so that they can be sent as the specification wants: raw, with no encoding.
 *
 * @since 0.1.0
 */
import * as Brand from "effect/Brand"
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "./AccessTokenError.js"

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

/**
 * Credentials that were checked: `make` and `fromConfig` return them. Two are equal when id and secret are.
 *
 * @see make, fromConfig
 *
 * @since 0.1.0
 * @category models
 */
export type ClientCredentials = Options & Brand.Brand<"@store-api/core/ClientCredentials">

const checked = Brand.nominal<ClientCredentials>()

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
  for (const [field, value] of [["clientId", clientId], ["clientSecret", Redacted.value(clientSecret)]] as const) {
    const found = unsendable.find(([pattern]) => pattern.test(value))
    if (found !== undefined) return Effect.fail(new CredentialsError({ field, reason: found[1] }))
  }
  return Effect.succeed(checked(Data.struct({ clientId, clientSecret })))
}

/**
 * Reads `PREFIX_CLIENT_ID` and `PREFIX_CLIENT_SECRET` from the configuration each time it runs, and checks them. As
 * `credentials`, it is run at each acquisition: a changed secret is used without a restart. Fails with `CredentialsError`
 * when one is missing or cannot be read. `prefix`: default `"STORE_API"`.
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
 * @since 0.1.0
 * @category constructors
 */
export const fromConfig = (prefix = "STORE_API"): Effect.Effect<ClientCredentials, CredentialsError> =>
  Effect.all({
    clientId: readable("clientId", Config.string(`${prefix}_CLIENT_ID`)),
    clientSecret: readable("clientSecret", Config.redacted(`${prefix}_CLIENT_SECRET`))
  }).pipe(Effect.flatMap(make))

/** Why a value cannot be sent raw: only printable ASCII without the separator can (RFC 6749, appendix A). */
const unsendable: ReadonlyArray<readonly [RegExp, reason: string]> = [
  [/^$/, "is empty"],
  [/[\r\n]$/, "ends with a line break, which cannot be sent"],
  [/&/, "holds &, which separates the fields of the request and cannot be sent raw"],
  [/[\x00-\x1f\x7f]/, "holds a control character, which cannot be sent raw"],
  [/[^\x20-\x7e]/, "holds a character beyond ASCII, which cannot be sent raw"]
]

const readable = <A>(field: CredentialsError["field"], config: Config.Config<A>): Effect.Effect<A, CredentialsError> =>
  Effect.mapError(config, (error) =>
    new CredentialsError({
      field,
      reason: ConfigError.isMissingDataOnly(error)
        ? "is missing from the configuration"
        : "cannot be read from the configuration"
    }))
