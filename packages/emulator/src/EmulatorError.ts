/**
 * Why an emulator cannot start.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * The emulator cannot start; `message` is one sentence that says what to do about it.
 *
 * - `PortInUse`: something else listens on the port.
 * - `CannotListen`: the system refuses the port or the address for another reason.
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
    /** What is wrong and what to do about it. Never a secret. */
    message: Schema.String
  }
) {}
