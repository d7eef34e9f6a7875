/**
 * What an emulator can be told when it starts.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type { Client } from "./Client.js"

/**
 * How an emulator is set up. Everything has a default; what cannot be used is an `EmulatorError`, `InvalidOption`.
 *
 * @see Emulator.layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Who may have tokens; default: `demoClient` alone. */
  readonly clients?: ReadonlyArray<Client> | undefined
  /** The TCP port; default 0, which takes a free one. */
  readonly port?: number | undefined
  /** The address to listen on, `"127.0.0.1"` (default) or `"::1"`: nothing beyond this machine can be asked for. */
  readonly host?: string | undefined
  /** A path in front of all others, such as `"/store"`; default none. */
  readonly basePath?: string | undefined
  /** How long a token is good, from above 0 to 60 minutes, which is the default. `expires_in` is its whole seconds. */
  readonly tokenLife?: Duration.DurationInput | undefined
  /**
   * Whether a client that asks again gets the token it has, with what is left of its life, until that dies or is
   * revoked; default false: a new token each time.
   */
  readonly repeatToken?: boolean | undefined
  /**
   * Whether the token endpoint accepts the fields in any order, and a `Content-Type` in any case and with parameters such
   * as a charset; default false.
   */
  readonly lenient?: boolean | undefined
  /**
   * The header in which the API expects the token, and what stands before the token in it; default `Authorization` and
   * `"Bearer "`.
   */
  readonly header?: {
    /** The name of the header, in any case. */
    readonly name: string
    /** Printable ASCII, with its blank if there is to be one; default `"Bearer "`. The API accepts it in any case. */
    readonly prefix?: string | undefined
  } | undefined
  /**
   * Whether to speak https, with a certificate for `localhost`, `127.0.0.1` and `::1` that was made for this run; default
   * false. Clients trust it by `Emulator.ca`.
   */
  readonly tls?: boolean | undefined
}
