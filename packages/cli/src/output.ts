/** Writes to standard output and standard error. Uses colours only on a terminal that has them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as HashSet from "effect/HashSet"
import * as Logger from "effect/Logger"
import { type CommandError, outputError } from "./CommandError.js"
import { Host, type Service } from "./Host.js"

type Out = "stdout" | "stderr"

const hasColours = ({ process }: Service, out: Out): boolean =>
  process[out].isTTY === true && process.env["TERM"] !== "dumb" && !process.env["NO_COLOR"] &&
  !process.env["CI"]

const colours = { red: 31, green: 32, yellow: 33 }

export const paint = (
  host: Service,
  out: Out,
  colour: keyof typeof colours,
  text: string
): string => hasColours(host, out) ? `\u001b[${colours[colour]}m${text}\u001b[0m` : text

/** Waits until the text is written, so that a slow reader also slows the server down. */
export const write = (
  out: Out,
  text: string | Uint8Array
): Effect.Effect<void, CommandError> =>
  Effect.flatMap(Host, ({ process }) =>
    Effect.async((resume) => {
      process[out].write(text, (error?: NodeJS.ErrnoException | null) => {
        // `runMain.ts` ends the program when its reader is gone.
        if (out === "stdout" && error?.code === "EPIPE") return
        resume(
          error === null || error === undefined
            ? Effect.void
            : outputError(`Cannot write to ${out}.`)
        )
      })
    }))

/** Prints a line for a person. A path or a URL in it may come from a file that somebody else wrote. */
export const line = (text: string): Effect.Effect<void, CommandError> =>
  write("stdout", `${visible(text)}\n`)

/** Shows control characters as `cat -v` does. Those of a server could move the cursor, set a title or reverse text. */
export const visible = (text: string): string =>
  text.replace(/\r(?=\n)/g, "").replace(
    /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu,
    (control) => {
      const code = control.charCodeAt(0)
      return code < 0x80
        ? `^${String.fromCharCode(code ^ 0x40)}`
        : `<U+${code.toString(16).padStart(4, "0")}>`
    }
  )

/** On a terminal, "after 2026-11-26T12:00:00Z" becomes a time from now, such as "in 3 s", which is not too early. */
export const forPerson = (out: Out, text: string): Effect.Effect<string> =>
  Effect.zipWith(Host, Clock.currentTimeMillis, ({ process }, now) => {
    const relative = (_: string, at: string) => `in ${inWords(Date.parse(at) - now + 999)}`
    return process[out].isTTY === true
      ? text.replace(/\bafter (\d{4}-\d\d-\d\dT[\d:.]+Z)/g, relative)
      : text
  })

/** A duration by its two largest units. */
export const inWords = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** Joins words as in a sentence: "a, b and c". */
export const listInWords = (words: ReadonlyArray<string>): string =>
  words.length < 2
    ? words.join()
    : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`

/** Prints what a person should know but no program reads. */
export const note = (text: string): Effect.Effect<void> => writeNote(visible(text))

const writeNote = (text: string) => Effect.ignore(write("stderr", `store-api: ${text}\n`))

/** Prints why a run fails. */
export const problem = (message: string): Effect.Effect<void> =>
  Effect.zipWith(
    Host,
    forPerson("stderr", message),
    (host, text) => paint(host, "stderr", "red", visible(text))
  ).pipe(
    Effect.flatMap(writeNote)
  )

/** On a terminal, reports after 2 seconds what the command is waiting for. */
export const whileWaiting = <A, E, R>(
  what: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const slow = Effect.interruptible(
    Effect.delay(note(`Waiting for ${what}. Press Ctrl+C to stop.`), "2 seconds")
  )
  const withNote = Effect.acquireUseRelease(
    Effect.fork(slow),
    () => effect,
    Fiber.interruptFork
  )
  return Effect.flatMap(
    Host,
    ({ process }) => process.stderr.isTTY === true ? withNote : effect
  )
}

/** Writes log entries, such as the library's warnings, to standard error. Starts sooner than a layer would. */
export const withLogger = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Host, (host) => {
    const logger = Logger.make<unknown, void>(({ annotations, logLevel, message }) => {
      const details = [...annotations].map(([name, value]) => `${name}: ${String(value)}`)
        .join(
          ", "
        )
      const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
      const level = paint(host, "stderr", "yellow", logLevel.label.toLowerCase())
      host.process.stderr.write(
        `store-api: ${level}: ${visible(`${words}${details === "" ? "" : ` (${details})`}`)}\n`
      )
    })
    return Effect.locally(
      effect,
      FiberRef.currentLoggers,
      HashSet.make<[Logger.Logger<unknown, unknown>]>(logger)
    )
  })
