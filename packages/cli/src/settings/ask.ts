/** Asks a person for a line on the terminal. */
import type { Key } from "node:readline"
import { Writable } from "node:stream"
import * as Effect from "effect/Effect"
import { Host } from "../Host.js"

/** Says what is wrong with an answer: "is empty". */
type Check = (text: string) => string | undefined

const checkCharacters: Check = (text) =>
  /[^\x20-\x7e]/.test(text) ? "contains characters that cannot be sent" : undefined

export const checkText: Check = (text) => text === "" ? "is empty" : checkCharacters(text)

export const checkUrl: Check = (text) =>
  checkText(text) ?? (/^https?:/.test(text) ? undefined : "must start with https://")

export const checkOptionalUrl: Check = (text) => text === "" ? undefined : checkUrl(text)

/**
 * Asks again until the answer can be used. Standard output stays free for the result. The terminal shows what is typed,
 * unless it is a secret.
 */
export const ask = (prompt: string, check: Check, isSecret = false): Effect.Effect<string> =>
  Effect.gen(function*() {
    const { stderr, stdin } = (yield* Host).process
    // Loaded only to ask, so that the command starts sooner.
    const { createInterface } = yield* Effect.promise(() => import("node:readline"))
    // Ctrl+C and Ctrl+D close the interface without an answer.
    let answer: Effect.Effect<string> = Effect.interrupt
    let rest = ""
    const keep = (_text: unknown, { sequence = "" }: Key) => {
      if (answer !== Effect.interrupt) rest += sequence
    }
    return yield* Effect.async<string>((resume) => {
      const output = isSecret
        ? new Writable({ write: (_text, _encoding, done) => done() })
        : stderr
      // In raw mode, so that the terminal itself never shows a secret that is typed or pasted too early.
      const lines = createInterface({
        input: stdin,
        output,
        terminal: true,
        historySize: 0,
        prompt
      })
      const show = (problem = "") => {
        stderr.write(isSecret ? `${problem}${prompt}` : problem)
        lines.prompt(true)
      }
      stdin.on("keypress", keep)
      lines.on("line", (text) => {
        const problem = check(text)
        if (problem !== undefined) {
          show(`${isSecret ? "\nThe secret" : "The value"} ${problem}.\n`)
          return
        }
        answer = Effect.succeed(text)
        lines.close()
      })
      // After Ctrl+Z and fg, Node leaves the input paused.
      lines.on("SIGCONT", () => show())
      lines.once("close", () => {
        if (isSecret || answer === Effect.interrupt) stderr.write("\n")
        resume(answer)
      })
      show()
      return Effect.sync(() => lines.close())
    }).pipe(
      Effect.ensuring(Effect.sync(() => {
        stdin.off("keypress", keep)
        // The rest of what was pasted answers the next questions.
        const unread = rest.replace(/^(\r\n?|\n)/, "")
        if (unread !== "") stdin.unshift(unread)
      }))
    )
  })
