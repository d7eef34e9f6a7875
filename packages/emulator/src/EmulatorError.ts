/**
 * The error of an emulator that cannot start, or cannot perform a fault.
 *
 * @since 1.0.0
 */
import * as Schema from "effect/Schema"

/**
 * The emulator cannot start, or `fail` cannot perform a fault. The `message` is one sentence that names the option and
 * tells you what to do.
 *
 * - `PortInUse`: another program listens on the port.
 * - `CannotListen`: the system does not allow the port or the address.
 * - `InvalidOption`: the value of an option or of a fault cannot be used, such as a host that is not loopback.
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
 * @since 1.0.0
 * @category errors
 */
export class EmulatorError
  extends Schema.TaggedError<EmulatorError>("@store-api/emulator/EmulatorError")(
    "EmulatorError",
    {
      /** The kind of problem. */
      reason: Schema.Literal("PortInUse", "CannotListen", "InvalidOption"),
      /** The option, such as `port` or `clients[0].clientId`, or a field of a fault, such as `script[0].status`. */
      option: Schema.String,
      /** The predicate of the sentence, such as "must be a whole number". It contains no secret. */
      problem: Schema.String
    }
  )
{
  override get message(): string {
    return `The option ${this.option} ${this.problem}.`
  }
}
