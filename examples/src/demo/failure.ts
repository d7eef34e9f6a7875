/** Describes any failure in one sentence that names variables instead of options. */
import type { HttpClientError } from "@effect/platform"
import type { AccessTokenError } from "@store-api/core"
import type { EmulatorError } from "@store-api/emulator"
import { Data, Match } from "effect"
import { stripped } from "./show.js"

export class DemoError extends Data.TaggedError("DemoError")<{ readonly message: string }> {}

export type Failure =
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
      ? `The token endpoint refused the credentials (status ${error.status}): ` +
        "check STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET."
      : error.describe(variables)),
  Match.tag("TokenRequestError", "TokenResponseError", (error) => error.describe(variables)),
  Match.tag("RequestError", "ResponseError", () => "The store's API did not respond: check STORE_API_URL."),
  Match.orElse(({ message }) => message)
)

export const sentence = (error: Failure): string => stripped(bySort(error))
