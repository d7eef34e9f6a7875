/**
 * The clients that the emulator knows.
 *
 * @since 0.1.0
 */
import * as Redacted from "effect/Redacted"

/**
 * A client that may have tokens. Two entries with one id and different secrets are both accepted, as while a secret is
 * being rotated.
 *
 * Id and secret travel raw in a form body (the specification, "Endpoints"): one that does not fit there is an
 * `EmulatorError`, `InvalidOption`.
 *
 * @see Emulator.layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Client {
  /** The id: printable ASCII, without `&`. */
  readonly clientId: string
  /** The secret: printable ASCII, without `&`. */
  readonly clientSecret: Redacted.Redacted
  /** `application_name` of its tokens; default: the client's id. */
  readonly applicationName?: string | undefined
  /** `developer.email` of its tokens; default `developer@example.invalid`. */
  readonly developerEmail?: string | undefined
}

/**
 * The invented client that an emulator knows when it is told of no other. Its secret holds the characters that a
 * form encoder would change, so that a client which encodes is refused at once.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 *
 * const clientId = Emulator.demoClient.clientId
 * const clientSecret = Emulator.demoClient.clientSecret // Redacted
 * ```
 *
 * @since 0.1.0
 * @category constants
 */
export const demoClient = {
  clientId: "demo-client",
  clientSecret: Redacted.make("demo+secret/of=no%value~"),
  applicationName: "Demo application",
  developerEmail: "demo@example.invalid"
} as const satisfies Client
