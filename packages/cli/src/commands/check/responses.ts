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
import { configuration, Fault, listed, noResponse, status } from "../../Fault.js"
import { inWords } from "../../output.js"
import { originOf, redirectRemedy } from "../../redirect.js"
import type { Settings } from "../../settings/settings.js"
import { layerHttp } from "../../token/httpClient.js"
import { type Failed, failed, limit } from "./connection.js"

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
      endpoint: { deadline: limit }
    }).pipe(
      Effect.updateService(HttpClient.HttpClient, HttpClient.transform(recorded(attempts))),
      Effect.provide(http)
    )
    return { attempts, client, provider, settings }
  }).pipe(Effect.mapError(settings.explain))

const recorded = (attempts: Attempts) => <E>(sent: Effect.Effect<HttpClientResponse, E>) =>
  Effect.onExit(sent, (exit) => {
    const response = Exit.isSuccess(exit) ? exit.value : undefined
    return Effect.map(Clock.currentTimeMillis, (at) => attempts.push({ at, response }))
  })

/** Checks that the library accepts these settings and the proxy of the environment. Sends nothing. */
export const checkSettings = (settings: Settings): Effect.Effect<void, Fault> =>
  Effect.scoped(libraryOf(settings))

/** Tells how earlier attempts ended, if not in the same way as the last one. */
const afterOthers = (attempts: Attempts): string => {
  const names = attempts.map(({ response }) => String(response?.status ?? "no response"))
  const others = [...new Set(names)].filter((name) => name !== names.at(-1))
  return others.length === 0 ? "" : `, after ${listed(others)}`
}

const isHtml = ({ headers }: HttpClientResponse): boolean =>
  /^\s*(text\/html|application\/xhtml)/i.test(headers["content-type"] ?? "")

const answer = (who: string, response: HttpClientResponse): string =>
  `${who} responded with ${response.status}${isHtml(response) ? " and a web page" : ""}`

/** Acquires a token that is not cached. */
export const requestToken = (library: Library) =>
  library.provider.get.pipe(
    Effect.mapError((error) => whyNoToken(error, library)),
    Effect.map(({ acquiredAt, expiresAt }) =>
      inWords(expiresAt.epochMillis - acquiredAt.epochMillis)
    ),
    Effect.map((lifetime) => ({
      detail: `a token valid for ${lifetime}${afterOthers(library.attempts)}`
    }))
  )

/** The remedy is that of other commands, with a hint where the response tells more than the error. */
const whyNoToken = (error: AccessTokenError, { attempts, settings }: Library): Failed => {
  const { code, message } = settings.explain(error)
  const because = (detail: string, hint = "") =>
    failed(detail + afterOthers(attempts), new Fault({ code, message: message + hint }))
  const last = attempts.at(-1)?.response
  if (last === undefined) return because("there was no response", ofTls(settings, "authUrl"))
  const detail = answer("the endpoint", last)
  if (error._tag === "TokenRequestError" && isTransient(error)) {
    return because(`${detail}, but the response broke off`)
  }
  const target = originOf(last.headers["location"])
  const isShown = target?.includes(Redacted.value(settings.client.clientSecret)) === false
  if (isShown) return because(`${detail}, which leads to ${target}`)
  if (!isHtml(last) || isTransient(error)) return because(detail)
  return because(
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
const tolerated = 2 * 60_000

/** Compares the clock with the last response that has a `Date`. */
export const compareClocks = ({ attempts }: Library) =>
  Effect.suspend(() => {
    const ahead = attempts.map(({ at, response }) =>
      at - Date.parse(response?.headers["date"] ?? "")
    )
      .filter(Number.isFinite).at(-1)
    if (ahead === undefined) {
      return Effect.succeed({ detail: "not compared, because no response has a Date" })
    }
    if (Math.abs(ahead) <= tolerated) {
      return Effect.succeed({ detail: "agrees with the server's" })
    }
    const difference = `${inWords(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"}`
    const fault = configuration(
      "Set the system clock, and synchronise it with a time service (NTP)."
    )
    return failed(`this machine's is ${difference} the server's`, fault)
  })

/** Sends a GET as `call` does. The library repeats it with another token if the API rejects the first one. */
export const callApi = ({ attempts, client, settings }: Library, path: string) => {
  const unanswered = (detail: string) => {
    const remedy = `Check ${settings.nameOf("apiUrl")}, the path, and whether the API runs.`
    return failed(detail, noResponse(remedy + ofTls(settings, "apiUrl")))
  }
  const rejected = "the API rejected the token, and no other is available"
  return client.get(path).pipe(
    Effect.mapError((error) =>
      isHttpClientError(error)
        ? unanswered("there was no response")
        : failed(
          isAccessTokenError(error) ? rejected : "it was not sent",
          settings.explain(error)
        )
    ),
    Effect.timeoutFail({
      duration: limit,
      onTimeout: () => unanswered("there was no response in time")
    }),
    Effect.flatMap((response) => {
      const calls = attempts.filter(({ response }) => response?.request.method === "GET")
      const detail = answer("the API", response) + afterOthers(calls)
      const remedy = remedyOf(response, calls.length > 1, settings)
      return remedy === undefined ? Effect.succeed({ detail }) : failed(detail, status(remedy))
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
  const both = `${apiUrl} and ${settings.nameOf("authUrl")}`
  const isDenied = status === 403 || (status === 401 && !isReplaced)
  if (isDenied) {
    return "The token is valid, but not for this. Ask for this client to be given access."
  }
  if (status === 401) {
    return `Check that ${both} belong to the same environment: the API does not know the token.`
  }
  if (status === 404) return `Check the path, and the path in ${apiUrl}.`
  if (status === 429) return "Wait: the client has called too often."
  if (status >= 500) return "Try again later, because the API has failed."
  if (status >= 400) return "Check the path and its query."
  if (status >= 300) return redirectRemedy(settings, response)
  return isHtml(response) ? `Check ${apiUrl}: it leads to a web site.` : undefined
}
