/** The HTTP responses of a check, and what they mean. */
import * as HttpClient from "@effect/platform/HttpClient"
import { isHttpClientError } from "@effect/platform/HttpClientError"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import {
  type AccessTokenError,
  isAccessTokenError,
  isTransient
} from "@store-api/core/AccessTokenError"
import * as StoreAuth from "@store-api/core/StoreAuth"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import {
  CommandError,
  configurationError,
  noResponseError,
  statusError
} from "../../CommandError.js"
import { inWords, listInWords } from "../../output.js"
import { originOf, redirectRemedy } from "../../redirect.js"
import type { Settings } from "../../settings/settings.js"
import { layerHttp } from "../../token/httpClient.js"
import { requestOf } from "../../token/request.js"
import { explainAssertion } from "./assertion.js"
import { failStep, limit, type StepFailure } from "./connection.js"

/** Every request in order: its response, if there was one, and when it came. */
type Attempts = Array<
  { readonly at: number; readonly response: HttpClientResponse | undefined }
>

type Library = Effect.Effect.Success<ReturnType<typeof libraryOf>>

/** The library with these settings, if it accepts them. It sends nothing by itself. */
export const libraryOf = (settings: Settings) =>
  Effect.gen(function*() {
    const { allowInsecure, authUrl, credentials } = settings
    const attempts: Attempts = []
    // Without a path, a check does not need the API.
    const options = { authUrl, apiUrl: settings.apiUrl ?? authUrl, credentials, allowInsecure }
    const http = yield* Layer.build(layerHttp(settings))
    const { client, provider } = yield* StoreAuth.make({
      ...options,
      endpoint: { deadline: limit, request: requestOf(settings) }
    }).pipe(
      Effect.updateService(HttpClient.HttpClient, HttpClient.transform(record(attempts))),
      Effect.provide(http)
    )
    return { attempts, client, provider, settings }
  }).pipe(Effect.mapError(settings.explain))

const record = (attempts: Attempts) => <E>(send: Effect.Effect<HttpClientResponse, E>) =>
  Effect.onExit(send, (exit) => {
    const response = Exit.isSuccess(exit) ? exit.value : undefined
    return Effect.map(Clock.currentTimeMillis, (at) => attempts.push({ at, response }))
  })

/** Checks that the library accepts these settings and the proxy of the environment. Sends nothing. */
export const checkSettings = (settings: Settings): Effect.Effect<void, CommandError> =>
  Effect.scoped(libraryOf(settings))

/** Tells how earlier attempts ended, if not in the same way as the last one. */
const describeOthers = (attempts: Attempts): string => {
  const names = attempts.map(({ response }) => String(response?.status ?? "no response"))
  const otherNames = [...new Set(names)].filter((name) => name !== names.at(-1))
  return otherNames.length === 0 ? "" : `, after ${listInWords(otherNames)}`
}

const isHtml = ({ headers }: HttpClientResponse): boolean =>
  /^\s*(text\/html|application\/xhtml)/i.test(headers["content-type"] ?? "")

const describeResponse = (who: string, response: HttpClientResponse): string =>
  `${who} responded with ${response.status}${isHtml(response) ? " and a web page" : ""}`

/** Acquires a token that is not cached. */
export const requestToken = (library: Library) =>
  library.provider.get.pipe(
    Effect.catchAll((error) => explainFailure(error, library)),
    Effect.map(({ acquiredAt, expiresAt }) =>
      inWords(expiresAt.epochMillis - acquiredAt.epochMillis)
    ),
    Effect.map((lifetime) => ({
      detail: `a token valid for ${lifetime}${describeOthers(library.attempts)}`
    }))
  )

const explainFailure = (error: AccessTokenError, library: Library) =>
  Effect.gen(function*() {
    const { assertionPath } = library.settings
    const hint = assertionPath === undefined ? "" : yield* explainAssertion(assertionPath)
    return yield* whyNoToken(error, library, hint)
  })

/** The remedy is that of other commands, with a hint where the response tells more than the error. */
const whyNoToken = (
  error: AccessTokenError,
  { attempts, settings }: Library,
  assertionHint: string
): StepFailure => {
  const { code, message } = settings.explain(error)
  const failBecause = (detail: string, hint = "") =>
    failStep(
      detail + describeOthers(attempts),
      new CommandError({ code, message: message + hint + assertionHint })
    )
  if (error._tag === "CredentialsError") return failBecause("nothing was sent")
  const last = attempts.at(-1)?.response
  if (last === undefined) {
    return failBecause("there was no response", ofTls(settings, "authUrl"))
  }
  const detail = describeResponse("the endpoint", last)
  if (error._tag === "TokenRequestError" && isTransient(error)) {
    return failBecause(`${detail}, but the response broke off`)
  }
  const target = originOf(last.headers["location"])
  const isShown = target?.includes(Redacted.value(settings.client.clientSecret)) === false
  if (isShown) return failBecause(`${detail}, which leads to ${target}`)
  if (!isHtml(last) || isTransient(error)) return failBecause(detail)
  return failBecause(
    detail,
    ` A web page comes from a web site, a login or a gateway: check ${
      settings.nameOf("authUrl")
    }.`
  )
}

const ofTls = (settings: Settings, option: "authUrl" | "apiUrl"): string =>
  settings[option]?.startsWith("http:")
    ? ` If its port speaks TLS, use https:// in ${settings.nameOf(option)}.`
    : ""

/** Allows for the delay of a network, and for a `Date` in whole seconds. */
const toleratedMillis = 2 * 60_000

/** Compares the clock with the last response that has a `Date`. */
export const compareClocks = ({ attempts }: Library) =>
  Effect.suspend(() => {
    const millisAhead = attempts.map(({ at, response }) =>
      at - Date.parse(response?.headers["date"] ?? "")
    )
      .filter(Number.isFinite).at(-1)
    if (millisAhead === undefined) {
      return Effect.succeed({ detail: "not compared, because no response has a Date" })
    }
    if (Math.abs(millisAhead) <= toleratedMillis) {
      return Effect.succeed({ detail: "agrees with the server's" })
    }
    const difference = `${inWords(Math.abs(millisAhead))} ${
      millisAhead > 0 ? "ahead of" : "behind"
    }`
    const error = configurationError(
      "Set the system clock, and synchronise it with a time service (NTP)."
    )
    return failStep(`this machine's is ${difference} the server's`, error)
  })

/** Sends a GET as `call` does. The library repeats it with another token if the API rejects the first one. */
export const callApi = ({ attempts, client, settings }: Library, path: string) => {
  const failUnanswered = (detail: string) => {
    const remedy = `Check ${settings.nameOf("apiUrl")}, the path, and whether the API runs.`
    return failStep(detail, noResponseError(remedy + ofTls(settings, "apiUrl")))
  }
  const rejectionText = "the API rejected the token, and no other is available"
  return client.get(path).pipe(
    Effect.mapError((error) =>
      isHttpClientError(error)
        ? failUnanswered("there was no response")
        : failStep(
          isAccessTokenError(error) ? rejectionText : "it was not sent",
          settings.explain(error)
        )
    ),
    Effect.timeoutFail({
      duration: limit,
      onTimeout: () => failUnanswered("there was no response in time")
    }),
    Effect.flatMap((response) => {
      const calls = attempts.filter(({ response }) => response?.request.method === "GET")
      const detail = describeResponse("the API", response) + describeOthers(calls)
      const remedy = remedyOf(response, calls.length > 1, settings)
      return remedy === undefined
        ? Effect.succeed({ detail })
        : failStep(detail, statusError(remedy))
    })
  )
}

/** `isReplaced`: the library tried another token, unless the 401 told it that none would help. */
const remedyOf = (
  response: HttpClientResponse,
  isReplaced: boolean,
  settings: Settings
): string | undefined => {
  const { status } = response
  const apiUrl = settings.nameOf("apiUrl")
  const bothUrls = `${apiUrl} and ${settings.nameOf("authUrl")}`
  const isDenied = status === 403 || (status === 401 && !isReplaced)
  if (isDenied) {
    return "The token is valid, but not for this. Ask for this client to be given access."
  }
  if (status === 401) {
    return `Check that ${bothUrls} belong to the same environment: the API does not know the token.`
  }
  if (status === 404) return `Check the path, and the path in ${apiUrl}.`
  if (status === 429) return "Wait: the client has called too often."
  if (status >= 500) return "Try again later, because the API has failed."
  if (status >= 400) return "Check the path and its query."
  if (status >= 300) return redirectRemedy(settings, response)
  return isHtml(response) ? `Check ${apiUrl}: it leads to a web site.` : undefined
}
