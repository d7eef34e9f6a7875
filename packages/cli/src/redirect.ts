/** What `call` and `check` say about a redirect of the API. */
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import type { Settings } from "./settings/settings.js"

/** The rest of a URL may repeat the request. */
export const originOf = (location: string | undefined, base?: string): string | undefined =>
  location !== undefined && URL.canParse(location, base) &&
    /^https?:$/.test(new URL(location, base).protocol)
    ? new URL(location, base).origin
    : undefined

export const redirectRemedy = (
  { apiUrl, nameOf }: Settings,
  { headers }: HttpClientResponse
): string =>
  (originOf(headers["location"], apiUrl) === originOf("", apiUrl)
    ? "Use the path that call --include shows"
    : `Set ${nameOf("apiUrl")} to the API itself`) + ", because the token follows no redirect."
