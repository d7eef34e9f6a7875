/**
 * The OAuth clients of an emulator.
 *
 * @since 1.0.0
 */
import * as Redacted from "effect/Redacted"

/**
 * A client to which the emulator issues tokens. Two entries may have the same id and different secrets, as during a
 * rotation; the emulator accepts both secrets.
 *
 * By default, the form body contains id and secret without encoding (the specification, "Endpoints"). If one of them
 * cannot be sent in this way, the emulator fails to start with `EmulatorError` (`InvalidOption`).
 *
 * @see Emulator.layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Client {
  /** Printable ASCII without `&`. Any text if `clientAuthentication` is not the specification's. */
  readonly clientId: string
  /** Printable ASCII without `&`. Any text if `clientAuthentication` is not the specification's. */
  readonly clientSecret: Redacted.Redacted
  /** The key that verifies its assertions, as PEM (SPKI). `private_key_jwt` requires it. */
  readonly publicKey?: string | undefined
  /** The `application_name` in token responses. Default: the client id. */
  readonly applicationName?: string | undefined
  /** The `developer.email` in token responses. Default: `developer@example.invalid`. */
  readonly developerEmail?: string | undefined
}

/**
 * The invented client of an emulator without the option `clients`. Its secret contains characters that a form encoder
 * changes, so the emulator notices a client that encodes its credentials.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 *
 * const clientId = Emulator.demoClient.clientId
 * const clientSecret = Emulator.demoClient.clientSecret // Redacted
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const demoClient = {
  clientId: "demo-client",
  clientSecret: Redacted.make("demo+secret/of=no%value~"),
  applicationName: "Demo application",
  developerEmail: "demo@example.invalid"
} as const satisfies Client
