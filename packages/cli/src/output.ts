/** What goes to standard output and standard error: text for whoever reads it there, colours for a terminal only. */
import { stripVTControlCharacters } from "node:util"
import type * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { exitCodes, Fault } from "./Fault.js"
import { Host, type Service } from "./Host.js"

type Out = "stdout" | "stderr"

const hasColours = ({ process }: Service, out: Out): boolean =>
  process[out].isTTY === true && (process.env["NO_COLOR"] ?? "") === ""

const painted = (host: Service, out: Out, code: number, text: string): string =>
  hasColours(host, out) ? `\u001b[${code}m${text}\u001b[0m` : text

const paint = (code: number) => (out: Out, text: string): Effect.Effect<string> =>
  Effect.map(Host, (host) => painted(host, out, code, text))

export const red = paint(31)
export const green = paint(32)

/** Done when it was taken: a reader that is slower than the server slows the server down. */
export const write = (out: Out, text: string | Uint8Array): Effect.Effect<void, Fault> =>
  Effect.flatMap(Host, ({ process }) =>
    Effect.async((resume) => {
      process[out].write(text, (error?: NodeJS.ErrnoException | null) => {
        // A reader that has gone ends the program, in silence: see `bin.ts`.
        if (out === "stdout" && error?.code === "EPIPE") return
        resume(
          error === null || error === undefined
            ? Effect.void
            : Effect.fail(new Fault({ code: exitCodes.unexpected, message: `${out} cannot be written to.` }))
        )
      })
    }))

export const line = (text: string): Effect.Effect<void, Fault> => write("stdout", `${text}\n`)

/** What a person should know, and a program does not read. */
export const note = (text: string): Effect.Effect<void> => Effect.ignore(write("stderr", `store-api: ${text}\n`))

/** Warnings of the library, beside what was asked for. */
export const layerLogger = Layer.unwrapEffect(Effect.map(Host, (host) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ annotations, logLevel, message }) => {
      const details = [...annotations].map(([name, value]) => `${name}=${String(value)}`).join(" ")
      const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
      const level = painted(host, "stderr", 33, logLevel.label.toLowerCase())
      host.process.stderr.write(`store-api: ${level}: ${[words, details].filter((part) => part !== "").join(" ")}\n`)
    })
  )))

/** Text of others, which has colours whoever reads it: without them where they are not wanted. The cursor moves all the same. */
export const inColourIfWanted = (host: Service, out: Out, text: string): string =>
  hasColours(host, out) ? text : text.replace(/\u001b\[[\d;]*m/g, "")

/** `@effect/cli` writes its help in colours, whoever reads it. */
export const withPlainConsole = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.zip(Effect.console, Host), ([console, host]) => {
    const to = (out: Out) => (...words: ReadonlyArray<unknown>) => {
      const text = words.map(String).join(" ").trimEnd()
      return Effect.ignore(write(out, `${hasColours(host, out) ? text : stripVTControlCharacters(text)}\n`))
    }
    return Effect.withConsole(effect, { ...console, log: to("stdout"), error: to("stderr") } satisfies Console.Console)
  })
