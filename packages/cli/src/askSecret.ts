/** Asks whoever sits at the terminal. What is typed is not shown; standard output stays free for the answer. */
import * as Prompt from "@effect/cli/Prompt"
import * as Terminal from "@effect/platform/Terminal"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Host } from "./Host.js"
import { inColourIfWanted, write } from "./output.js"

const onStderr = Layer.effect(
  Terminal.Terminal,
  Effect.map(Effect.zip(Terminal.Terminal, Host), ([terminal, host]) => ({
    ...terminal,
    columns: Effect.sync(() => host.process.stderr.columns ?? 0),
    rows: Effect.sync(() => host.process.stderr.rows ?? 0),
    display: (text: string) => Effect.ignore(write("stderr", inColourIfWanted(host, "stderr", text)))
  }))
).pipe(Layer.provide(Layer.unwrapEffect(Effect.map(Host, ({ terminal }) => terminal))))

export const askSecret: Effect.Effect<Redacted.Redacted> = Prompt.run(Prompt.hidden({ message: "Client secret" })).pipe(
  Effect.provide(Layer.provideMerge(onStderr, NodeContext.layer)),
  // What comes next is the shell's, on a line of its own.
  Effect.catchTag("QuitException", () => Effect.zipRight(Effect.ignore(write("stderr", "\n")), Effect.interrupt))
)
