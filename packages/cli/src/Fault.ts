/** How a run can end, other than well: one sentence, and an exit code that scripts can tell apart. */
import {
  type AccessTokenError,
  type ConfigurationError,
  isTransient,
  type OptionNames,
  type UntrustedOriginError
} from "@store-api/core/AccessTokenError"
import * as Data from "effect/Data"

export const exitCodes = {
  /** The program itself is at fault. */
  unexpected: 1,
  /** The command line cannot be used. */
  usage: 2,
  /** Something is missing from the configuration, or cannot be used. */
  configuration: 3,
  /** There is no token, and asking again will not help. */
  refused: 4,
  /** There is no token now; asking again later may help. */
  unavailable: 5,
  /** The call had no answer. */
  noAnswer: 6,
  /** The call was answered with a status of 400 or more. */
  status: 7,
  interrupted: 130
} as const

export class Fault extends Data.TaggedError("Fault")<{
  readonly code: number
  readonly message: string
}> {}

export const usage = (message: string): Fault => new Fault({ code: exitCodes.usage, message })

export const configuration = (message: string): Fault => new Fault({ code: exitCodes.configuration, message })

/** The errors of the library, in words of the command line. */
export const fromLibrary = (error: AccessTokenError | ConfigurationError | UntrustedOriginError): Fault =>
  new Fault({ code: codeOf(error), message: messageOf(error) })

const messageOf = (error: AccessTokenError | ConfigurationError | UntrustedOriginError): string => {
  if (error._tag === "UntrustedOriginError") {
    return `The access token may not go to ${error.origin}, only to ${error.trusted.join(", ")}; nothing was sent.`
  }
  return error.describe(names)
}

const names: OptionNames = {
  allowInsecure: "--allow-insecure",
  authUrl: "STORE_API_AUTH_URL",
  apiUrl: "STORE_API_URL",
  clientId: "STORE_API_CLIENT_ID",
  clientSecret: "STORE_API_CLIENT_SECRET"
}

const codeOf = (error: AccessTokenError | ConfigurationError | UntrustedOriginError): number => {
  switch (error._tag) {
    case "UntrustedOriginError":
      return exitCodes.usage
    case "ConfigurationError":
    case "CredentialsError":
      return exitCodes.configuration
    default:
      return isTransient(error) ? exitCodes.unavailable : exitCodes.refused
  }
}
