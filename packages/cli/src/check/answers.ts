/** What came back over HTTP, and what it means. */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type { AccessToken } from "@store-api/core/AccessToken"
import type { AccessTokenError } from "@store-api/core/AccessTokenError"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as AuthorizedHttpClient from "@store-api/core/AuthorizedHttpClient"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Array from "effect/Array"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import { exitCodes, type Fault, fromLibrary } from "../Fault.js"
import type { Settings } from "../settings.js"
import { lasting, listed } from "../wording.js"
import { Failed, inTime } from "./Step.js"

/** An answer of the endpoint, as far as it helps to understand an error. */
export interface Seen {
  readonly status: number
  readonly isHtml: boolean
  /** The origin that a redirect led to. */
  readonly target: Option.Option<string>
  /** How far this machine's clock is ahead of the server's, in milliseconds. */
  readonly ahead: Option.Option<number>
}

/** Every attempt, in its order; none that had no answer. */
export type Attempts = Ref.Ref<ReadonlyArray<Option.Option<Seen>>>

export const lastAnswer = (attempts: Attempts): Effect.Effect<Option.Option<Seen>> =>
  Effect.map(Ref.get(attempts), (attempts) => Option.flatten(Array.findLast(attempts, Option.isSome)))

/** How the attempts before the last one ended, unless it ended so too: what the endpoint's retries pass over. */
export const before = (attempts: Attempts): Effect.Effect<string> =>
  Effect.map(Ref.get(attempts), (all) => {
    const nameOf = Option.match<string, Seen, string>({
      onNone: () => "no answer",
      onSome: ({ status }) => status < 400 ? "an answer that broke off" : String(status)
    })
    // Of the last one, what is no refusal is the token.
    const last = Option.map(
      Option.filter(Array.last(all), (attempt) => Option.isNone(attempt) || attempt.value.status >= 400),
      nameOf
    )
    const names = all.slice(0, -1).map(nameOf)
    const others = Array.dedupe(names.filter((name) => !Option.contains(last, name)))
    return others.length === 0 ? "" : `, after ${listed(others)}`
  })

/** More than a server and a network need; the `Date` of an answer counts whole seconds. */
const tolerated = 2 * 60_000

/** Whether the library takes these settings, the proxy of the environment included. Nothing is sent. */
export const canBeAsked = (
  { allowInsecure, apiUrl, authUrl, credentials }: Settings & { readonly apiUrl: Option.Option<string> }
) =>
  TokenEndpoint.make({ authUrl, credentials: Effect.succeed(credentials), allowInsecure }).pipe(
    Effect.zipRight(
      Effect.forEach(Option.toArray(apiUrl), (apiUrl) => AuthorizedHttpClient.make({ apiUrl, allowInsecure }))
    ),
    Effect.provide(Layer.merge(AccessTokenProvider.layerTest(Effect.never), NodeHttp.layer()))
  )

/** The URL of the token request, which shows a wrong base URL. */
export const tokenRequest = ({ href }: URL): string => `POST ${href.replace(/\/+$/, "")}/v1/oauth/accesstoken`

/** Asks for a token, which is not kept. */
export const requestToken = (
  { allowInsecure, authUrl, credentials }: Settings,
  attempts: Attempts
): Effect.Effect<AccessToken, Failed> =>
  TokenEndpoint.make({ authUrl, credentials: Effect.succeed(credentials), allowInsecure, deadline: "10 seconds" }).pipe(
    Effect.flatMap((endpoint) => endpoint.acquire(Option.none())),
    Effect.provide(Layer.provide(watched(attempts), NodeHttp.layer())),
    Effect.catchAll((error) =>
      Effect.gen(function*() {
        if (error._tag === "ConfigurationError") return yield* failed(fromLibrary(error), "an option cannot be used")
        const last = yield* lastAnswer(attempts)
        const { what, ...rest } = ofToken(error, last, Redacted.value(credentials.clientSecret))
        return yield* new Failed({ ...rest, what: what + (yield* before(attempts)) })
      })
    )
  )

const watched = (attempts: Attempts) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(
      HttpClient.HttpClient,
      HttpClient.transformResponse(Effect.onExit((exit) =>
        Effect.flatMap(
          Exit.isSuccess(exit) ? Effect.asSome(seenIn(exit.value)) : Effect.succeedNone,
          (seen) => Ref.update(attempts, Array.append(seen))
        )
      ))
    )
  )

const seenIn = ({ headers, status }: HttpClientResponse.HttpClientResponse): Effect.Effect<Seen> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    status,
    isHtml: isHtml(headers["content-type"]),
    target: originOf(headers["location"]),
    ahead: Option.filter(Option.some(now - Date.parse(headers["date"] ?? "")), Number.isFinite)
  }))

const isHtml = (contentType: string | undefined): boolean =>
  /^\s*(text\/html|application\/xhtml)/i.test(contentType ?? "")

/** Of a server's words only what is an origin. */
const originOf = (location: string | undefined): Option.Option<string> =>
  location !== undefined && URL.canParse(location) && /^https?:$/.test(new URL(location).protocol)
    ? Option.some(new URL(location).origin)
    : Option.none()

const failed = ({ code, message }: Fault, what: string): Failed =>
  new Failed({ what, remedy: message, code: code as Failed["code"] })

const ofToken = (error: AccessTokenError, last: Option.Option<Seen>, secret: string): Failed => {
  const refused = (what: string, remedy: string) => new Failed({ what, remedy, code: exitCodes.refused })
  const page = Option.filter(last, ({ isHtml }) => isHtml)
  switch (error._tag) {
    case "TokenRefusedError":
      if (error.reason === "InvalidClient") {
        // Without a word of the service itself, it may never have been asked.
        if (Option.isSome(page) && Option.isNone(error.code)) return refusingPage(page.value)
        return refused(
          `the client id or the secret is wrong (${error.status})`,
          "Check STORE_API_CLIENT_ID and the secret, and that they are of this service" +
            (error.changedByFormDecoding ? "; they hold + or %, which some servers read differently." : ".")
        )
      }
      if (error.reason === "RateLimited") {
        return new Failed({
          what: "too many tokens were asked for (429)",
          remedy: Option.match(error.retryAt, {
            onNone: () => "Wait a while; then let runs and processes share a token, of which one an hour is enough.",
            onSome: (at) => `Wait until ${DateTime.formatIso(at)}; one token an hour is enough for many runs.`
          }),
          code: exitCodes.unavailable
        })
      }
      return Option.isSome(page) && error.reason !== "Unavailable"
        ? webPage(page.value)
        : failed(fromLibrary(error), `it was refused (${error.status})`)
    case "TokenResponseError":
      return Option.match(page, {
        onNone: () => failed(fromLibrary(error), "the answer is no token"),
        onSome: webPage
      })
    case "TokenRequestError": {
      if (error.reason !== "Redirect") return failed(fromLibrary(error), `it had no answer (${error.reason})`)
      const target = Option.filter(Option.flatMap(last, ({ target }) => target), (origin) => !origin.includes(secret))
      return refused(
        Option.match(target, {
          onNone: () => "it was redirected",
          onSome: (origin) => `it was redirected to ${origin}`
        }),
        "Set STORE_API_AUTH_URL to the service itself: credentials follow no redirect."
      )
    }
    default:
      return failed(fromLibrary(error), "the token cannot be used")
  }
}

const webPage = ({ status }: Seen): Failed =>
  new Failed({
    what: `the answer is a web page, not JSON (${status})`,
    remedy: "Check STORE_API_AUTH_URL: it leads to a web site or a login page, not to the access-token service.",
    code: exitCodes.refused
  })

const refusingPage = ({ status }: Seen): Failed =>
  new Failed({
    what: `a web page refuses access, and does not say why (${status})`,
    remedy:
      "Check that STORE_API_AUTH_URL leads to the access-token service, not to a login page or a gateway; if it does, " +
      "the client id or the secret is wrong.",
    code: exitCodes.refused
  })

/** Whether the clock of this machine is that of the server, as far as an answer tells. */
export const compareClocks = ({ ahead }: Seen): Effect.Effect<string, Failed> =>
  Option.match(ahead, {
    onNone: () => Effect.succeed("the answer has no Date"),
    onSome: (ahead) =>
      Math.abs(ahead) <= tolerated
        ? Effect.succeed("agrees with the server's")
        : Effect.fail(
          new Failed({
            what: `this machine's is ${lasting(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} the server's`,
            remedy: "Set the clock of this machine, and let it be kept by a time service (NTP).",
            code: exitCodes.configuration
          })
        )
  })

/** One GET, once, with this token. */
export const callApi = (
  { allowInsecure, apiUrl }: { readonly allowInsecure: boolean; readonly apiUrl: string },
  token: AccessToken,
  path: string
): Effect.Effect<string, Failed> =>
  AuthorizedHttpClient.make({ apiUrl, allowInsecure, retryUnauthorized: false }).pipe(
    Effect.flatMap((client) => client.get(path)),
    Effect.flatMap(ofApi),
    Effect.scoped,
    Effect.provide(Layer.merge(AccessTokenProvider.layerTest(token), NodeHttp.layer())),
    (asked) =>
      inTime(asked, () =>
        new Failed({
          what: "there was no answer in time",
          remedy: "Try again later, and check STORE_API_URL, the path, and whether the API is busy.",
          code: exitCodes.noAnswer
        })),
    Effect.mapError((error) => {
      switch (error._tag) {
        case "Failed":
          return error
        case "RequestError":
        case "ResponseError":
          return new Failed({
            what: "there was no answer",
            remedy: "Check STORE_API_URL, the path, and whether the API runs.",
            code: exitCodes.noAnswer
          })
        default:
          return failed(fromLibrary(error), "it was not sent")
      }
    })
  )

const remedies: Readonly<Record<number, string>> = {
  401: "Check that STORE_API_URL and STORE_API_AUTH_URL are of the same environment: the API does not know the token.",
  403: "Ask for this API to be added to what the client may do: the token is good, but not for this.",
  404: "Check the path, and the path in STORE_API_URL.",
  429: "Wait a while: the client has called too often."
}

const ofApi = ({ headers, status }: HttpClientResponse.HttpClientResponse): Effect.Effect<string, Failed> => {
  const fails = (what: string, remedy: string) => Effect.fail(new Failed({ what, remedy, code: exitCodes.status }))
  if (status >= 300 && status < 400) {
    return fails(
      `it was redirected (${status})`,
      "Set STORE_API_URL to where the API is: the token follows no redirect."
    )
  }
  if (status >= 400) {
    return fails(
      `the API answered ${status}`,
      remedies[status] ??
        (status >= 500 ? "Try again later: the API is out of order." : "Check the path and its query.")
    )
  }
  return isHtml(headers["content-type"])
    ? fails(
      `the answer is a web page, not JSON (${status})`,
      "Check STORE_API_URL: it leads to a web site, not to the API."
    )
    : Effect.succeed(`the API answered ${status}`)
}
