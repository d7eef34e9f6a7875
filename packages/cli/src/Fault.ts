/** How a run fails: one sentence, and an exit code for scripts. */
import type { AccessTokenError, ConfigurationError, UntrustedOriginError } from "@store-api/core/AccessTokenError"
import { isTransient } from "@store-api/core/AccessTokenError"
import * as Data from "effect/Data"

/** The only table of exit codes. The help prints it. */
export const exitCodes = {
  done: { code: 0, text: "Done" },
  unexpected: { code: 1, text: "A bug in store-api" },
  usage: { code: 2, text: "The command line cannot be used" },
  configuration: { code: 3, text: "The settings cannot be used; check: or the clock" },
  refused: { code: 4, text: "No token, and a later attempt will not help" },
  unavailable: { code: 5, text: "No token now; status: no valid token is cached" },
  noResponse: { code: 6, text: "The API did not respond" },
  status: { code: 7, text: "The API responded with an error (call --fail, check)" },
  interrupted: { code: 130, text: "Interrupted; 143 by SIGTERM" }
} as const

export class Fault extends Data.TaggedError("Fault")<{
  readonly code: number
  readonly message: string
}> {}

const faultOf = (kind: keyof typeof exitCodes) => (message: string) =>
  new Fault({ code: exitCodes[kind].code, message })

export const usage = faultOf("usage")
export const configuration = faultOf("configuration")
export const refused = faultOf("refused")
export const unavailable = faultOf("unavailable")
export const noResponse = faultOf("noResponse")
export const status = faultOf("status")
export const unexpected = faultOf("unexpected")

export type LibraryError = AccessTokenError | ConfigurationError | UntrustedOriginError

/** What the user gave as an option of the library: the name of a flag or a variable, and the value of a URL. */
export type Given = Readonly<Record<string, { readonly name: string; readonly value?: string | undefined } | undefined>>

/** The errors of the library, with the names of the flags and variables that the user gave. */
export const fromLibrary = (given: Given) => (error: LibraryError): Fault => {
  const names = Object.fromEntries(Object.entries(given).map(([option, about]) => [option, about?.name]))
  switch (error._tag) {
    case "UntrustedOriginError":
      return usage(`The access token may only go to ${error.trusted.join(", ")}; nothing was sent to ${error.origin}.`)
    case "ConfigurationError": {
      // Of such a URL, only the scheme can be wrong.
      const isHttp = /^http:\/\/[^?#@]+$/i.test(given[error.option]?.value ?? "")
      return configuration(`${error.describe(names)}${isHttp ? " Use --allow-insecure to send secrets there." : ""}`)
    }
    case "CredentialsError":
      return configuration(error.describe(names))
    default:
      return (isTransient(error) ? unavailable : refused)(error.describe(names))
  }
}

export const listed = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`
