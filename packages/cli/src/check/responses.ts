/** The HTTP responses of a check, and what they mean. */
import * as HttpClient from "@effect/platform/HttpClient"
import { isHttpClientError } from "@effect/platform/HttpClientError"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { isAccessTokenError } from "@store-api/core/AccessTokenError"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as AuthorizedHttpClient from "@store-api/core/AuthorizedHttpClient"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as TokenSource from "@store-api/core/TokenSource"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type Fault, type LibraryError, listed } from "../Fault.js"
import { inWords } from "../output.js"
import { layerHttp, originOf, redirectRemedy } from "../provider.js"
import type { Settings } from "../settings.js"
import { Failed, failed, inTime, type Result, tlsRemedy } from "./connection.js"

/** Every attempt in order: its response, if there was one, and when it came. */
export type Attempts = Array<{ readonly at: number; readonly response: HttpClientResponse | undefined }>

/** Tells how earlier attempts ended, unless the last one ended in the same way. `error`: that of the last one. */
export const earlierAttempts = (attempts: Attempts, error?: LibraryError): string => {
  const names = attempts.map(({ response }) =>
    response === undefined ? "no response" : response.status < 400 ? brokenOff : String(response.status)
  )
  const isWhole = error?._tag !== "TokenRequestError" && names.at(-1) === brokenOff
  const others = [...new Set(names.slice(0, -1))].filter((name) => isWhole || name !== names.at(-1))
  return others.length === 0 ? "" : `, after ${listed(others)}`
}

const brokenOff = "a response that broke off"

/** Checks that the library accepts these settings and the proxy of the environment. Sends nothing. */
export const checkSettings = (settings: Settings): Effect.Effect<void, Fault> =>
  TokenEndpoint.make(settings).pipe(
    Effect.zipRight(
      settings.apiUrl === undefined ? Effect.void : AuthorizedHttpClient.make({ ...settings, apiUrl: settings.apiUrl })
    ),
    Effect.provide(Layer.merge(AccessTokenProvider.layerTest(Effect.never), layerHttp(settings))),
    Effect.mapBoth({ onFailure: settings.explain, onSuccess: () => undefined })
  )

/** The URL of the token request, which shows a wrong base URL. */
export const tokenRequest = ({ authUrl }: Settings): string =>
  `POST ${authUrl.replace(/\/+$/, "")}/v1/oauth/accesstoken`

/** Acquires a token that is not cached. The provider adds the time of the next attempt to an error. */
export const requestToken = (settings: Settings, attempts: Attempts) =>
  Effect.gen(function*() {
    const http = yield* Layer.build(Layer.provide(recording(attempts), layerHttp(settings)))
    const endpoint = yield* Effect.provide(TokenEndpoint.make({ ...settings, deadline: "10 seconds" }), http)
    const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, endpoint)
    return { provider, token: yield* provider.get }
  }).pipe(
    Effect.catchAll((error) =>
      Effect.gen(function*() {
        const { code, detail, remedy } = ofToken(error, attempts.at(-1)?.response, settings)
        const isTransport = error._tag === "TokenRequestError" && error.reason === "Transport"
        const other = isTransport ? tlsRemedy(new URL(settings.authUrl), settings.nameOf("authUrl")) : Effect.void
        const earlier = earlierAttempts(attempts, error)
        return yield* new Failed({ code, detail: detail + earlier, remedy: (yield* other) ?? remedy })
      })
    )
  )

const recording = (attempts: Attempts) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(
      HttpClient.HttpClient,
      HttpClient.transformResponse(Effect.onExit((exit) =>
        Effect.map(Clock.currentTimeMillis, (at) =>
          attempts.push({ at, response: Exit.isSuccess(exit) ? exit.value : undefined }))
      ))
    )
  )

const isHtml = ({ headers }: HttpClientResponse): boolean =>
  /^\s*(text\/html|application\/xhtml)/i.test(headers["content-type"] ?? "")

/** Describes the problem. The remedy is that of the other commands, unless the response tells more than the error. */
const ofToken = (error: LibraryError, last: HttpClientResponse | undefined, settings: Settings): Failed => {
  const { code, message } = settings.explain(error)
  const because = (detail: string, remedy = message) => new Failed({ detail, remedy, code })
  if (error._tag === "TokenRequestError") {
    if (error.reason === "TooLarge") return because("the response is too large")
    const expected = last === undefined ? "HTTP" : "complete"
    if (error.reason !== "Redirect") return because(`there was no ${expected} response (${error.reason})`)
    const target = originOf(last?.headers["location"])
    const isShown = target?.includes(Redacted.value(settings.client.clientSecret)) === false
    return because(`it was redirected${isShown ? ` to ${target}` : ""}`)
  }
  const authUrl = settings.nameOf("authUrl")
  const isPage = last !== undefined && isHtml(last)
  const webSite = () =>
    because(
      `the response is a web page, not JSON (${last?.status ?? 0})`,
      `Check ${authUrl}: it leads to a web site or a login page, not to the token service.`
    )
  if (error._tag === "TokenResponseError") return isPage ? webSite() : because("the response contains no token")
  if (error._tag !== "TokenRefusedError") return because("the token cannot be used")
  if (isPage && (error.reason === "InvalidRequest" || error.reason === "Other")) return webSite()
  // Without a code of the service itself, the request may never have reached it.
  if (isPage && error.reason === "InvalidClient" && Option.isNone(error.code)) {
    const remedy = `Check that ${authUrl} leads to the token service, not to a login page or a gateway. ` +
      "If it does, the client id or the secret is wrong."
    return because(`a web page refuses access without a reason (${error.status})`, remedy)
  }
  return because(`${causes[error.reason]} (${error.status})`)
}

const causes = {
  InvalidClient: "the client id or the secret is wrong",
  InvalidRequest: "the endpoint does not understand the request",
  RateLimited: "the endpoint limits the rate of requests",
  Unavailable: "the endpoint is not available",
  Other: "the endpoint responded with an error"
} as const

/** Allows for the delay of a network, and for a `Date` in whole seconds. */
const tolerated = 2 * 60_000

/** Compares the clock with the last response, if there was one. */
export const compareClocks = (attempts: Attempts): Effect.Effect<Result, Failed> | undefined => {
  const last = attempts.filter(({ response }) => response !== undefined).at(-1)
  if (last?.response === undefined) return undefined
  const ahead = last.at - Date.parse(last.response.headers["date"] ?? "")
  if (Number.isNaN(ahead)) return Effect.succeed({ detail: "the response has no Date" })
  if (Math.abs(ahead) <= tolerated) return Effect.succeed({ detail: "agrees with the server's" })
  const difference = `${inWords(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"}`
  const remedy = "Set the system clock, and synchronise it with a time service (NTP)."
  return failed("configuration", `this machine's is ${difference} the server's`, remedy)
}

/** Sends a GET as `call` does, and repeats it with another token if the API rejects the first one. */
export const callApi = (settings: Settings, apiUrl: string, provider: AccessTokenProvider.Service, path: string) =>
  Effect.gen(function*() {
    const first = yield* provider.current
    const response = yield* Effect.flatMap(
      AuthorizedHttpClient.make({ ...settings, apiUrl }),
      (client) => client.get(path)
    )
    // The library keeps the token if the 401 tells it that another one would not help.
    const isKept = Equal.equals(first, yield* Effect.orElseSucceed(provider.current, Option.none))
    return yield* ofApi(response, settings, isKept)
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(Layer.succeed(AccessTokenProvider.AccessTokenProvider, provider), layerHttp(settings))),
    (call) => inTime(call, () => noResponse("there was no response in time", settings)),
    Effect.catchAll((error) => {
      if (error._tag === "Failed") return error
      if (isHttpClientError(error)) {
        return Effect.flatMap(
          tlsRemedy(new URL(apiUrl), settings.nameOf("apiUrl")),
          (remedy) => noResponse("there was no response", settings, remedy)
        )
      }
      const { code, message } = settings.explain(error)
      const detail = isAccessTokenError(error)
        ? "the API rejected the token, and no other is available"
        : "it was not sent"
      return new Failed({ detail, remedy: message, code })
    })
  )

const noResponse = (detail: string, { nameOf }: Settings, remedy?: string) =>
  failed("noResponse", detail, remedy ?? `Check ${nameOf("apiUrl")}, the path, and whether the API runs.`)

const ofApi = (response: HttpClientResponse, settings: Settings, isKept: boolean): Effect.Effect<Result, Failed> => {
  const { status } = response
  const [apiUrl, authUrl] = [settings.nameOf("apiUrl"), settings.nameOf("authUrl")]
  const denied = "The token is valid, but not for this. Ask for this client to be given access."
  const remedies: Readonly<Record<number, string>> = {
    401: isKept
      ? denied
      : `Check that ${apiUrl} and ${authUrl} belong to the same environment, because the API does not know the token.`,
    403: denied,
    404: `Check the path, and the path in ${apiUrl}.`,
    429: "Wait: the client has called too often."
  }
  if (status >= 300 && status < 400) {
    return failed("status", `it was redirected (${status})`, redirectRemedy(settings, response))
  }
  if (status >= 400) {
    const remedy = status >= 500 ? "Try again later, because the API has failed." : "Check the path and its query."
    return failed("status", `the API responded with ${status}`, remedies[status] ?? remedy)
  }
  return isHtml(response)
    ? failed("status", `the response is a web page, not JSON (${status})`, `Check ${apiUrl}: it leads to a web site.`)
    : Effect.succeed({ detail: `the API responded with ${status}${isKept ? "" : ", after a 401 for the first token"}` })
}
