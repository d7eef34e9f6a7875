/** The `STORE_API_*` variables: whether they suffice for the real service, and which one to correct after a failure. */
import type { HttpClientError } from "@effect/platform"
import type { AccessTokenError } from "@store-api/core"
import type { EmulatorError } from "@store-api/emulator"
import { Data, Effect, Match } from "effect"
import { stripped } from "./show.js"

export class DemoError extends Data.TaggedError("DemoError")<{ readonly message: string }> {}

const required = [
  "STORE_API_AUTH_URL",
  "STORE_API_URL",
  "STORE_API_CLIENT_ID",
  "STORE_API_CLIENT_SECRET"
]

const names = Effect.sync(() =>
  Object.keys(process.env).filter((name) => name.startsWith("STORE_API_"))
)

/**
 * Whether any variable of the service is set. If only some are, that is a mistake, not a reason to use the emulator.
 */
export const isConfigured = Effect.map(names, (names) => names.length > 0)

/** Fails with all variables that are missing or empty. Also names those that are set, because one may be mistyped. */
export const checked = Effect.flatMap(names, (names) => {
  const missing = required.filter((name) => !names.includes(name))
  const empty = required.filter((name) => process.env[name] === "")
  const found = names.filter((name) => !empty.includes(name))
  if (missing.length + empty.length === 0) return Effect.void
  const lacking = [verb(missing, "missing"), verb(empty, "empty")].filter((text) =>
    text !== ""
  ).join(", and ")
  const because = found.length === 0
    ? ""
    : `${verb(found, "set")}, so the real service is used, but `
  return Effect.fail(
    new DemoError({
      message:
        `${because}${lacking}: set them, or unset all STORE_API_* variables to use the emulator.`
    })
  )
})

const verb = (names: ReadonlyArray<string>, state: string) =>
  names.length === 0 ? "" : `${list(names)} ${names.length === 1 ? "is" : "are"} ${state}`

const list = (names: ReadonlyArray<string>) =>
  names.join(", ").replace(/, ([^,]*)$/, " and $1")

type Failure =
  | AccessTokenError.AccessTokenError
  | AccessTokenError.ConfigurationError
  | AccessTokenError.UntrustedOriginError
  | DemoError
  | EmulatorError.EmulatorError
  | HttpClientError.HttpClientError

const variables: AccessTokenError.OptionNames = {
  authUrl: "STORE_API_AUTH_URL",
  apiUrl: "STORE_API_URL",
  clientId: "STORE_API_CLIENT_ID",
  clientSecret: "STORE_API_CLIENT_SECRET"
}

const bySort = Match.type<Failure>().pipe(
  Match.tag("ConfigurationError", (error) => error.describe(variables)),
  Match.tag("CredentialsError", ({ field, reason }) => `${variables[field]} ${reason}.`),
  Match.tag(
    "UntrustedOriginError",
    ({ origin }) =>
      `STORE_API_DEMO_PATH leads to ${origin}, which may not receive the token: set it to a path below STORE_API_URL.`
  ),
  Match.tag("TokenRefusedError", (error) =>
    error.reason === "InvalidClient"
      ? `The token endpoint refused the credentials (status ${error.httpStatus}): ` +
        "check STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET."
      : error.describe(variables)),
  Match.tag("TokenRequestError", "TokenResponseError", (error) => error.describe(variables)),
  Match.tag(
    "RequestError",
    "ResponseError",
    () => "The store's API did not respond: check STORE_API_URL."
  ),
  Match.orElse(({ message }) => message)
)

/** Describes any failure in one sentence that names variables instead of options. */
export const sentence = (error: Failure): string => stripped(bySort(error))
