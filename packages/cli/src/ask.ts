/** Asks for a setting at the terminal, and shows nothing of a secret. Standard output stays free for the result. */
import * as Terminal from "@effect/platform/Terminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Fault } from "./Fault.js"
import { Host } from "./Host.js"
import { write } from "./output.js"

/** `isOptional`: nothing may be typed. */
export const ask = (
  prompt: string,
  { isOptional = false, isSecret = false }: { readonly isOptional?: boolean; readonly isSecret?: boolean }
): Effect.Effect<string, Fault> =>
  Effect.gen(function*() {
    const { readInput } = yield* Terminal.Terminal
    const keys = yield* readInput
    const echo = (shown: string) => isSecret ? Effect.void : write("stderr", shown)
    // After `readInput`, which turns the echo of the terminal off.
    yield* write("stderr", prompt)
    let text = ""
    while (true) {
      // Ctrl+C and Ctrl+D end the keys.
      const { input, key } = yield* Effect.catchAll(
        keys.take,
        () => Effect.zipRight(write("stderr", "\n"), Effect.interrupt)
      )
      if (key.name === "return" || key.name === "enter") {
        yield* write("stderr", "\n")
        if (/^[\x20-\x7e]+$/.test(text) || (text === "" && isOptional)) return text
        const problem = text === "" ? "is empty" : "contains characters that cannot be sent"
        yield* write("stderr", `The ${isSecret ? "secret" : "value"} ${problem}.\n${prompt}`)
        text = ""
      } else {
        const kept = key.name === "backspace" ? text.slice(0, -1) : key.ctrl && key.name === "u" ? "" : undefined
        const typed = Option.getOrElse(input, () => "")
        yield* echo(kept === undefined ? typed : "\b \b".repeat(text.length - kept.length))
        text = kept ?? text + typed
      }
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.unwrapEffect(Effect.map(Host, ({ terminal }) => terminal)))
  )
