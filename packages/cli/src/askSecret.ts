/** Asks for the client secret at the terminal, without showing it. Standard output stays free for the result. */
import * as Terminal from "@effect/platform/Terminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Fault } from "./Fault.js"
import { Host } from "./Host.js"
import { write } from "./output.js"

const prompt = "Client secret (not shown): "

export const askSecret: Effect.Effect<Redacted.Redacted, Fault> = Effect.gen(function*() {
  const { readInput } = yield* Terminal.Terminal
  const keys = yield* readInput
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
      if (/^[\x20-\x7e]+$/.test(text)) return Redacted.make(text)
      const problem = text === "" ? "is empty" : "contains characters that cannot be sent"
      yield* write("stderr", `The secret ${problem}.\n${prompt}`)
      text = ""
    } else if (key.name === "backspace") text = text.slice(0, -1)
    else if (key.ctrl && key.name === "u") text = ""
    else text += Option.getOrElse(input, () => "")
  }
}).pipe(
  Effect.scoped,
  Effect.provide(Layer.unwrapEffect(Effect.map(Host, ({ terminal }) => terminal)))
)
