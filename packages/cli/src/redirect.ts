/** What `call` and `check` say about a redirect of the API. */
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import * as Option from "effect/Option"
import type { Settings } from "./settings/settings.js"

/** The rest of a URL may repeat the request. */
export const originOf = (location: string | undefined, base?: string): string | undefined =>
  Option.fromNullable(location).pipe(
    Option.flatMap((location) => parseUrl(location, base)),
    Option.filter(({ protocol }) => /^https?:$/.test(protocol)),
    Option.map(({ origin }) => origin),
    Option.getOrUndefined
  )

const parseUrl = Option.liftThrowable((location: string, base: string | undefined) =>
  new URL(location, base)
)

export const redirectRemedy = (
  { apiUrl, nameOf }: Settings,
  { headers }: HttpClientResponse
): string =>
  (originOf(headers["location"], apiUrl) === originOf("", apiUrl)
    ? "Use the path that call --include shows"
    : `Set ${nameOf("apiUrl")} to the API itself`) + ", because the token follows no redirect."
