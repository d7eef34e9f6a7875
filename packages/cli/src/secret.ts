/** Where the client secret comes from: a file, standard input, a variable, or the terminal. */
import { text } from "node:stream/consumers"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, usage } from "./Fault.js"
import { secretVariable } from "./flags.js"
import { Host, isAttended } from "./Host.js"
import type { Found, Variables } from "./variables.js"

/** A secret that is read only when an address needs it. */
export interface Secret extends Omit<Found, "value"> {
  /** The flag or the variable that the user gave. */
  readonly name: string
  readonly read: Effect.Effect<Redacted.Redacted, Fault, FileSystem.FileSystem>
}

/** `undefined` if no source has the secret and there is no terminal to ask at. */
export const locate = (
  file: string | undefined,
  variables: Variables
): Effect.Effect<Secret | undefined, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const host = yield* Host
    const { stdin } = host.process
    const secret = (name: string, origin: string, read: Secret["read"]) => ({ name, origin, isImplicit: false, read })
    if (file === "-" && stdin.isTTY === true) {
      return yield* usage("--secret-file - reads a pipe or a file. On a terminal, leave it out to be asked.")
    }
    if (file === "-") return secret("--secret-file", "standard input", Effect.map(readAll(stdin), ofText))
    if (file !== undefined) {
      const read = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(host.pathOf(file)))
      const problem = configuration(`Cannot read ${file}, the file of --secret-file.`)
      return secret("--secret-file", file, Effect.mapBoth(read, { onFailure: () => problem, onSuccess: ofText }))
    }
    const variable = variables.find(secretVariable)
    if (variable !== undefined) {
      return { ...variable, name: secretVariable, read: Effect.succeed(ofText(variable.value)) }
    }
    const prompt = Effect.flatMap(
      Effect.promise(() => import("./ask.js")),
      ({ ask }) => ask("Client secret (not shown): ", { isSecret: true })
    )
    return isAttended(host) ? secret("client secret", "the prompt", Effect.map(prompt, ofText)) : undefined
  })

const ofText = (text: string): Redacted.Redacted => Redacted.make(text.replace(/\r?\n$/, ""))

const readAll = (stdin: NodeJS.ReadableStream): Effect.Effect<string, Fault> =>
  Effect.tryPromise({
    try: () => text(stdin),
    catch: () => configuration("Cannot read standard input, the file of --secret-file.")
  }).pipe(
    // A folder, too, is read as nothing.
    Effect.filterOrFail(
      (text) => text !== "",
      () => configuration("Standard input, the file of --secret-file, is empty.")
    )
  )
