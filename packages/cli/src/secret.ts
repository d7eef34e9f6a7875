/** Where the client's secret comes from: a file, standard input, a variable, or whoever sits at the terminal. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { Host } from "./Host.js"
import { secretName } from "./names.js"
import type { Found, Variables } from "./variables.js"

/** A secret that can be had. It is not read yet: it may turn out that it has nowhere to go. */
export interface Secret extends Omit<Found, "value"> {
  readonly read: Effect.Effect<Redacted.Redacted, Fault, FileSystem.FileSystem>
}

/** `None` if no source has the secret and there is no terminal to ask at. */
export const locate = (
  given: Pick<flags.Values<typeof flags.common>, "secret-file" | "secret-stdin">,
  variables: Variables
): Effect.Effect<Option.Option<Secret>, Fault> =>
  Effect.flatMap(Host, ({ pathOf, process }) => {
    const found = (origin: string, read: Secret["read"]) =>
      Effect.succeedSome<Secret>({ origin, read, stumbledOn: false })
    if (given["secret-stdin"]) {
      if (Option.isSome(given["secret-file"])) return usage("--secret-file and --secret-stdin cannot both be given.")
      return process.stdin.isTTY === true
        ? usage("--secret-stdin reads a pipe or a file; on a terminal the secret is asked for without it.")
        : found("standard input", Effect.map(readAll(process.stdin), ofText))
    }
    if (Option.isSome(given["secret-file"])) {
      const path = given["secret-file"].value
      return found(
        path,
        Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(pathOf(path))).pipe(
          Effect.mapBoth({
            onFailure: () => configuration(`The file of --secret-file, ${path}, cannot be read.`),
            onSuccess: ofText
          })
        )
      )
    }
    const variable = variables.find(secretName)
    if (Option.isSome(variable)) {
      const { value, ...about } = variable.value
      return Effect.succeedSome({ ...about, read: Effect.succeed(ofText(value)) })
    }
    // Without a person at the terminal, the prompt would wait forever.
    const isAttended = (process.env["CI"] ?? "") === ""
    return isAttended && process.stdin.isTTY === true && process.stderr.isTTY === true
      ? found(
        "the prompt",
        Effect.flatMap(Effect.promise(() => import("./askSecret.js")), ({ askSecret }) => askSecret)
      )
      : Effect.succeedNone
  })

const ofText = (text: string): Redacted.Redacted => Redacted.make(text.replace(/\r?\n$/, ""))

const readAll = (stdin: NodeJS.ReadableStream): Effect.Effect<string, Fault> =>
  Effect.async<string, Fault>((resume) => {
    const chunks: Array<Uint8Array> = []
    stdin.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    stdin.once("error", () => resume(configuration("Standard input, for --secret-stdin, cannot be read.")))
    stdin.once("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8"))))
  }).pipe(
    // A folder, too, is read as nothing.
    Effect.filterOrFail((text) => text !== "", () => configuration("Standard input, for --secret-stdin, is empty."))
  )
