/** How a run fails: one line, and an exit code for scripts. */
import {
  type AccessTokenError,
  type ConfigurationError,
  isTransient,
  type OptionNames,
  type UntrustedOriginError
} from "@store-api/core/AccessTokenError"
import * as Data from "effect/Data"
import * as Record from "effect/Record"

/** The only table of exit codes, which the help prints. 1 and 4 are the same as for the GitHub CLI. */
export const exitCodes = {
  done: { code: 0, text: "Done" },
  httpError: { code: 1, text: "The API responded with an error or a redirect (call)" },
  usage: { code: 2, text: "The command line is invalid" },
  configuration: {
    code: 3,
    text: "A setting is missing or invalid, or (check) the clock is wrong"
  },
  refused: { code: 4, text: "No token, and trying again will not help" },
  unavailable: { code: 5, text: "No token now; status: no valid token is cached" },
  noResponse: { code: 6, text: "The API did not respond" },
  status: { code: 7, text: "An error or a redirect of the API (call --fail, check)" },
  output: { code: 8, text: "The output cannot be written, or not shown on a terminal" },
  unexpected: { code: 70, text: "A bug in store-api" },
  notStarted: { code: 127, text: "run cannot start the program; else the program's code" },
  interrupted: { code: 130, text: "Interrupted; 143 by SIGTERM" }
} as const

export class CommandError extends Data.TaggedError("CommandError")<{
  readonly code: number
  readonly message: string
}> {}

const errors = Record.map(
  exitCodes,
  ({ code }) => (message: string) => new CommandError({ code, message })
)

export const {
  configuration: configurationError,
  httpError,
  noResponse: noResponseError,
  notStarted: notStartedError,
  output: outputError,
  refused: refusedError,
  status: statusError,
  unavailable: unavailableError,
  usage: usageError
} = errors

export type LibraryError = AccessTokenError | ConfigurationError | UntrustedOriginError

/** Turns an error of the library into one that names the flag or variable that the user gave. */
export const fromLibrary = (names: OptionNames) => (error: LibraryError): CommandError => {
  switch (error._tag) {
    case "UntrustedOriginError":
      return usageError(
        `The access token may only go to ${
          error.trusted.join(", ")
        }; nothing was sent to ${error.origin}.`
      )
    case "ConfigurationError":
    case "CredentialsError":
      return configurationError(error.describe(names))
    default:
      return (isTransient(error) ? unavailableError : refusedError)(error.describe(names))
  }
}

/** Returns the system's code of an error or of its cause. The rest of its message may contain the request. */
export const systemCode = (cause: unknown, depth = 0): string | undefined => {
  if (!(cause instanceof Error) || depth > 4) return undefined
  return "code" in cause && typeof cause.code === "string"
    ? cause.code
    : systemCode(cause.cause, depth + 1)
}
