/**
 * Why an emulator cannot start.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * The emulator cannot start. `message` is one sentence that begins with the option and says what to do.
 *
 * - `PortInUse`: something else listens on the port.
 * - `CannotListen`: the system refuses the port, the address or a file for the certificate.
 * - `InvalidOption`: an option cannot be used, such as a host that is not loopback.
 *
 * @example
 * ```ts
 * import { Emulator } from "@store-api/emulator"
 * import { Effect, Layer } from "effect"
 *
 * const program = Layer.launch(Emulator.layer({ port: 4010 })).pipe(
 *   Effect.catchTag("EmulatorError", (error) => Effect.logError(error.message))
 * )
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class EmulatorError extends Schema.TaggedError<EmulatorError>("@store-api/emulator/EmulatorError")(
  "EmulatorError",
  {
    /** Which of the three it is. */
    reason: Schema.Literal("PortInUse", "CannotListen", "InvalidOption"),
    /** The name of the option: `port`, `clients[0].clientId`. A command has its flag or its variable here: `--port`. */
    option: Schema.String,
    /** What is wrong with it, as the end of a sentence: "must be a whole number". Never a secret. */
    problem: Schema.String
  }
) {
  override get message(): string {
    return `${this.option} ${this.problem}.`
  }
}
