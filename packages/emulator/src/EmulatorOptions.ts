/**
 * The options of an emulator.
 *
 * @since 1.0.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { Client } from "./Client.js"
import type { IssuedToken } from "./IssuedToken.js"

/**
 * How a client authenticates at the token endpoint:
 *
 * - `specification`: the form of the specification, with raw values.
 * - `client_secret_post`: id and secret are fields of a form that is encoded as usual (RFC 6749 section 2.3.1).
 * - `client_secret_basic`: id and secret are form-encoded in an `Authorization` header of the scheme Basic, and are not
 *   in the form (the same section).
 * - `private_key_jwt`: the form has an assertion that the client signed (RFC 7523 section 2.2), with `iss`, `sub`,
 *   `aud` (the URL of the emulator or of its token endpoint), `exp` and a `jti` that is valid once.
 * - `none`: the form has the id alone.
 *
 * All but the first are named as in RFC 8414. With them, a requested `scope` is granted, and other parameters are
 * ignored.
 *
 * @see Emulator.layer
 *
 * @since 1.0.0
 * @category models
 */
export type ClientAuthentication =
  | "specification"
  | "client_secret_post"
  | "client_secret_basic"
  | "private_key_jwt"
  | "none"

/**
 * Which nonces the proofs of RFC 9449 need, at the token endpoint and at the API. A `nonce` is valid for a minute, and
 * a `nonce-per-request` for one proof.
 *
 * @see Emulator.layer
 *
 * @since 1.0.0
 * @category models
 */
export type Dpop = "no-nonce" | "nonce" | "nonce-per-request"

/**
 * The path of the page of an emulator that has the option `steering`. The page and the commands send requests to paths
 * below it.
 *
 * @example
 * ```ts
 * import { type Emulator, EmulatorOptions } from "@store-api/emulator"
 *
 * const pageOf = ({ url }: Emulator.Service) => new URL(EmulatorOptions.steeringPath, url).href
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const steeringPath = "/_emulator/"

/**
 * The schema of a response of the protected API, with which a file can hold responses.
 *
 * @example
 * ```ts
 * import { EmulatorOptions } from "@store-api/emulator"
 * import { Schema } from "effect"
 *
 * const decode = Schema.decode(Schema.parseJson(Schema.Array(EmulatorOptions.ApiResponse)))
 *
 * const responses = decode(`[{ "path": "/orders", "body": [{ "id": 7 }] }]`)
 * ```
 *
 * @since 1.0.0
 * @category schemas
 */
export const ApiResponse = Schema.Struct({
  /** The method of the request. Default: any. */
  method: Schema.optional(Schema.String),
  /** The path of the request below `basePath`, without a query. */
  path: Schema.String,
  /** A whole number from 200 to 999. Default: 200. */
  status: Schema.optional(Schema.Number),
  /** Sent without changes. A body without a `Content-Type` is sent as `application/json`. */
  headers: Schema.optional(
    Schema.Record({
      key: Schema.String,
      value: Schema.Union(Schema.String, Schema.Array(Schema.String))
    })
  ),
  /** A string is sent as it is, anything else as JSON. Default: no body. */
  body: Schema.optional(Schema.Unknown)
})

/**
 * A response of the protected API to requests with a valid token.
 *
 * @example
 * ```ts
 * import { Emulator, type EmulatorOptions } from "@store-api/emulator"
 *
 * const orders: EmulatorOptions.ApiResponse = { path: "/orders", body: [{ id: 7, article: "chair" }] }
 *
 * const EmulatorLive = Emulator.layer({ responses: [orders] })
 * ```
 *
 * @since 1.0.0
 * @category models
 */
export interface ApiResponse extends Schema.Schema.Type<typeof ApiResponse> {}

/**
 * The options of an emulator. With a value that cannot be used, or has another type, the emulator fails to start with
 * `EmulatorError` (`InvalidOption`).
 *
 * @see Emulator.layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /** The clients that get tokens. Default: `demoClient` alone. */
  readonly clients?: ReadonlyArray<Client> | undefined
  /** The TCP port. 0 chooses a free one. Default: 0. */
  readonly port?: number | undefined
  /** The address to listen on: `"127.0.0.1"` or `"::1"`. Other machines cannot connect. Default: `"127.0.0.1"`. */
  readonly host?: string | undefined
  /** A prefix of all paths, such as `"/store"`. Default: none. */
  readonly basePath?: string | undefined
  /** The path of the token endpoint, below `basePath`. Default: `"/v1/oauth/accesstoken"`. */
  readonly tokenPath?: string | undefined
  /**
   * How clients authenticate at the token endpoint. An array of all but `"specification"` accepts each
   * of them. Default: `"specification"`.
   */
  readonly clientAuthentication?:
    | ClientAuthentication
    | ReadonlyArray<ClientAuthentication>
    | undefined
  /**
   * Binds tokens to keys (RFC 9449): both servers require a proof, and tokens have the type `DPoP`. Without it,
   * tokens are for any bearer.
   */
  readonly dpop?: Dpop | undefined
  /**
   * The lifetime of a token, more than zero. `expires_in` is the number of whole seconds. Default: 60 minutes, which is
   * also the longest: a longer one counts as that.
   */
  readonly tokenLife?: Duration.DurationInput | undefined
  /**
   * Whether a client receives its last token again, with its remaining lifetime, until that token is expired or
   * revoked. Default: false, so that each response holds a new token.
   */
  readonly repeatToken?: boolean | undefined
  /**
   * Whether the token endpoint accepts the fields in any order, and a `Content-Type` in any case and with parameters
   * such as a charset. Default: false. Only `"specification"` requires an order.
   */
  readonly lenient?: boolean | undefined
  /**
   * The header in which the API expects the token, and the text before the token. Default: `Authorization` and
   * `"Bearer "`, or `"DPoP "` with `dpop`.
   */
  readonly header?: {
    /** The name of the header, in any case. */
    readonly name: string
    /** Printable ASCII, including a trailing space. The API accepts it in any case. Default: `"Bearer "`. */
    readonly prefix?: string | undefined
  } | undefined
  /**
   * What the API responds to requests with a valid token. The first response for the method and the path applies.
   * Without one, the response describes the request. Default: none.
   */
  readonly responses?: ReadonlyArray<ApiResponse> | undefined
  /** Tokens of an earlier emulator, from its `tokens`, that this one accepts too. Default: none. */
  readonly tokens?: ReadonlyArray<IssuedToken> | undefined
  /**
   * Whether to serve, below `/_emulator/`, the page that shows tokens and requests, and the requests with which the
   * page and the commands change faults and tokens. Only programs and pages of this machine can use them, and they are
   * not recorded. Default: false, although the command serves them.
   */
  readonly steering?: boolean | undefined
  /**
   * Whether to serve https, with a certificate for `localhost`, `127.0.0.1` and `::1` that is created for this run.
   * Clients trust it with `ca` of the running emulator. Default: false.
   */
  readonly tls?: boolean | undefined
}
