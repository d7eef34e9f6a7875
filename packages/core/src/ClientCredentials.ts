/**
 * The client id and secret. `TokenRequest` checks whether they can be sent, which depends on how.
 *
 * @since 1.0.0
 */
import type * as Brand from "effect/Brand"
import * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { CredentialsError } from "./AccessTokenError.js"
import { checkBy, variablesOf } from "./internal/credentials.js"

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

/**
 * Creates credentials. Fails with `CredentialsError` if the id or the secret is missing, empty or of another type, such
 * as a secret that is not `Redacted`. Whether all their characters can be sent depends on the `TokenRequest`: that of
 * the specification sends them unencoded, and refuses `&`, control characters and characters beyond ASCII.
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
export const make = (options: Options): Effect.Effect<ClientCredentials, CredentialsError> =>
  Effect.map(checkBy([[/^$/, "is empty"]], options), () => brand(options))

/**
 * Creates the credentials of a client that authenticates without a secret: by an assertion
 * (`TokenRequest.clientAssertion`) or by its TLS certificate (`TokenRequest.clientId`). Its `clientSecret` is empty, so
 * requests that send a secret fail with `CredentialsError`. To share its tokens, set `shared.sealingKey`, because there
 * is no secret to seal them with. Fails with `CredentialsError` if the id is missing, empty or not a text.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenRequest } from "@store-api/core"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://mtls.auth.example",
 *   path: "/oauth2/token",
 *   credentials: ClientCredentials.withoutSecret("demo-client"),
 *   request: TokenRequest.clientId()
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const withoutSecret = (
  clientId: string
): Effect.Effect<ClientCredentials, CredentialsError> =>
  Effect.map(
    checkBy([[/^$/, "is empty"]], { clientId, clientSecret: Redacted.make("none") }),
    () => brand({ clientId, clientSecret: Redacted.make("") })
  )

const brand = ({ clientId, clientSecret }: Options): ClientCredentials =>
  Data.struct({ clientId, clientSecret }) as ClientCredentials // only the type has the brand

/**
 * Reads `PREFIX_CLIENT_ID` and `PREFIX_CLIENT_SECRET` from the configuration each time it runs, and checks them. As the
 * option `credentials` it runs at each acquisition, so a new secret needs no restart. Fails with a `CredentialsError`
 * that names the variable if one is missing, unreadable or empty, or cannot be sent. The default of `prefix` is
 * `"STORE_API"`.
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
export const fromConfig = (
  prefix = "STORE_API"
): Effect.Effect<ClientCredentials, CredentialsError> => {
  const variables = {
    clientId: `${prefix}_CLIENT_ID`,
    clientSecret: `${prefix}_CLIENT_SECRET`
  }
  return Effect.all({
    clientId: readable("clientId", Config.string(variables.clientId)),
    clientSecret: readable("clientSecret", Config.redacted(variables.clientSecret))
  }).pipe(
    Effect.flatMap(make),
    Effect.tap((credentials) => Effect.sync(() => variablesOf.set(credentials, variables))),
    Effect.mapError((error) =>
      new CredentialsError({
        ...error,
        variable: error.field === "clientId" ? variables.clientId : variables.clientSecret
      })
    )
  )
}

const readable = <A>(
  field: CredentialsError["field"],
  config: Config.Config<A>
): Effect.Effect<A, CredentialsError> =>
  Effect.matchEffect(Config.option(config), {
    onFailure: () =>
      new CredentialsError({ field, reason: "cannot be read from the configuration" }),
    onSuccess: Option.match({
      onNone: () =>
        Effect.fail(
          new CredentialsError({ field, reason: "is missing from the configuration" })
        ),
      onSome: Effect.succeed
    })
  })
