/** Sends a request with the token, and repeats it with another token after a 401. */
import type * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../../AccessToken.js"
import {
  type AccessTokenError,
  TokenResponseError,
  UntrustedOriginError
} from "../../AccessTokenError.js"
import * as asyncContext from "../asyncContext.js"
import * as boundedBody from "../boundedBody.js"
import * as httpErrors from "../httpErrors.js"
import { sameValue } from "../repeatedToken.js"
import { userAgent } from "../userAgent.js"
import * as hiddenHeader from "./hiddenHeader.js"
import type { TrustedOrigins } from "./trustedOrigins.js"

/**
 * Milliseconds. `acquiredAt` may be this much before the token request that follows a 401, because it is never too
 * late: a busy machine may stop between the readings of its two clocks.
 */
const acquiredAtTolerance = 1000

/** The errors of adding the token. */
export type Failure = AccessTokenError | UntrustedOriginError

/** A request, and the token that was added to it. */
interface Sent {
  readonly request: HttpClientRequest.HttpClientRequest
  readonly token: AccessToken
}

/** A request that was sent, and its response. */
interface Attempt<E> {
  /** Undefined if the request already had the header. */
  readonly sent: Sent | undefined
  readonly response: HttpClientResponse.HttpClientResponse
  /**
   * The response, or the error of a given client that fails because of the status, as `filterStatusOk` does. Neither
   * contains the header, unless the request already had it.
   */
  readonly result: Exit.Exit<HttpClientResponse.HttpClientResponse, E>
}

interface Options {
  readonly header: string
  readonly format: ((accessToken: string) => string) | undefined
  readonly provider: {
    readonly get: Effect.Effect<AccessToken, AccessTokenError>
    readonly current: Effect.Effect<Option.Option<AccessToken>, unknown>
    readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  }
  readonly retryUnauthorized: Effect.Effect<boolean>
  readonly trusted: TrustedOrigins
}

/**
 * Returns a function that sends a request. After a 401, it invalidates the token and repeats the request with the token
 * that the provider then returns. Fails with the error of the provider if it has none.
 *
 * It repeats the request once more if the repeat gets a 401 for a token that was acquired before the first 401: both
 * may have been revoked together, as when processes that share tokens have two. The store has then lost both. So the
 * token of a further repeat would be new, and the API rejects that too.
 */
export const makeExecute = <E, R>(
  client: HttpClient.HttpClient.With<E, R>,
  options: Options
) => {
  const { header, provider, retryUnauthorized, trusted } = options
  const headerValue = makeHeaderValue(options.format)
  const hidden = hiddenHeader.make(header)

  /** Reads the token only for a request to a trusted origin that does not have the header. */
  const send = (
    request: HttpClientRequest.HttpClientRequest
  ): Effect.Effect<Attempt<E | Failure>, E | Failure, R> => {
    // The response belongs to the request that was sent last. The given client may send several, because it may retry.
    let sent: Sent | undefined
    const attach = (
      request: HttpClientRequest.HttpClientRequest
    ): Effect.Effect<typeof request, Failure> => {
      if (request.headers[header] !== undefined) {
        sent = undefined
        return Effect.succeed(request)
      }
      return Effect.flatMap(provider.get, (token) => {
        sent = { request, token }
        return Exit.map(
          headerValue(token),
          (value) => HttpClientRequest.setHeader(withUserAgent(request), header, value)
        )
      })
    }
    // Attaches the token after the `mapRequest` of the given client, and again for each of its retries.
    const clientWithToken = HttpClient.mapRequestEffect(
      client,
      (request) => Effect.flatMap(trusted.resolve(request), attach)
    )
    const response = clientWithToken.execute(request)
    // The client of Effect would replace the caller's own `traceparent`.
    const traced = request.headers["traceparent"] === undefined
      ? response
      : Effect.locally(response, HttpClient.currentTracerPropagation, false)
    const hide = <A>(error: A): A => sent === undefined ? error : hidden.error(error)
    const outcome = Effect.catchAllDefect(traced, (defect) => Effect.die(hide(defect)))
    return Effect.matchEffect(outcome, {
      onSuccess: (response) => {
        const result = Exit.succeed(
          sent === undefined ? response : hidden.response(response)
        )
        return Effect.succeed({ sent, response, result })
      },
      onFailure: (error) => {
        const result = Exit.fail(hide(error))
        const response = httpErrors.statusResponse(error)
        if (response !== undefined) return Effect.succeed({ sent, response, result })
        // The given client followed a redirect to another origin, and `boundClient` did not send the token there.
        const cause = HttpClientError.isHttpClientError(error) ? error.cause : undefined
        return cause instanceof UntrustedOriginError ? Effect.fail(cause) : result
      }
    })
  }

  /** After a 401, continues in the caller's async context, so that the repeat is sent there too. */
  const sendInContext = (request: HttpClientRequest.HttpClientRequest) =>
    Effect.suspend(() => {
      const restoreContext = asyncContext.capture()
      return Effect.flatMap(
        send(request),
        (attempt) =>
          attempt.response.status === 401
            ? Effect.as(restoreContext, attempt)
            : Effect.succeed(attempt)
      )
    })

  /** After a 401, repeats the request with another token, at most twice. */
  const recover = (
    request: HttpClientRequest.HttpClientRequest,
    first: Attempt<E | Failure>
  ) =>
    Effect.gen(function*() {
      const firstRejection = (yield* Clock.currentTimeMillis) - acquiredAtTolerance
      let attempt = first
      // A 401 leads to a repeat if its token was acquired before this time: the first 401 always, the last one never.
      for (const acquiredBefore of [Infinity, firstRejection, -Infinity]) {
        const rejected = rejectedOf(attempt)
        if (rejected === undefined) break
        const { token } = rejected
        yield* provider.invalidate(token)
        // The provider keeps a rejected token if too many tokens were rejected before.
        const cached = yield* Effect.orElseSucceed(provider.current, () =>
          Option.none<AccessToken>())
        const isKept = Option.exists(cached, (cached) =>
          sameValue(cached, token))
        const isNew = token.acquiredAt.epochMillis >= acquiredBefore
        if (isNew || isKept || !isRepeatable(rejected) || !(yield* retryUnauthorized)) break
        // The token request may need the connection that the unread 401 occupies.
        yield* boundedBody.drain(attempt.response)
        attempt = yield* sendInContext(request)
      }
      return yield* attempt.result
    })

  return (
    request: HttpClientRequest.HttpClientRequest
  ): Effect.Effect<HttpClientResponse.HttpClientResponse, E | Failure, R> =>
    Effect.flatMap(
      sendInContext(request),
      (attempt) => attempt.response.status === 401 ? recover(request, attempt) : attempt.result
    )
}

const withUserAgent = (request: HttpClientRequest.HttpClientRequest): typeof request =>
  request.headers["user-agent"] === undefined
    ? HttpClientRequest.setHeader(request, "user-agent", userAgent)
    : request

/** Returns what was sent, if the API rejected its token and may accept another one. */
const rejectedOf = ({ response, sent }: Attempt<unknown>): Sent | undefined =>
  response.status === 401 && !deniesEveryToken(response) ? sent : undefined

/**
 * Whether the 401 says that the API would reject another token too: the client lacks a scope (RFC 6750 §3.1), or, as
 * some gateways report it, has no API product for this request, or the proof is wrong, and not the token (RFC 9449 §7).
 */
const deniesEveryToken = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  /insufficient_scope|use_dpop_nonce|invalid_dpop_proof|NoApiProductMatch|no api ?product match/i
    .test(
      headers["www-authenticate"] ?? ""
    )

/** Whether the body can be sent again. A stream cannot, and a raw body may contain one. */
const isRepeatable = ({ request }: Sent): boolean => repeatable.includes(request.body._tag)

const repeatable: ReadonlyArray<HttpBody.HttpBody["_tag"]> = [
  "Empty",
  "Uint8Array",
  "FormData"
]

/**
 * Returns a function that creates the header value, once for each token. It fails for text that is not valid in a
 * header, because a custom `TokenSource` or `format` may return any text.
 */
const makeHeaderValue = (format: Options["format"]) => {
  const values = new WeakMap<AccessToken, Exit.Exit<string, TokenResponseError>>()
  const create = (token: AccessToken) => {
    const accessToken = Redacted.value(token.value)
    if (!isSendable(accessToken)) return unsendable("access_token")
    const tryFormat = Option.liftThrowable(
      format ?? ((accessToken: string) => `${token.tokenType} ${accessToken}`)
    )
    const text = Option.getOrUndefined(tryFormat(accessToken))
    return isSendable(text) ? Exit.succeed(text) : unsendable("client.header.format")
  }
  return (token: AccessToken) => {
    const value = values.get(token) ?? create(token)
    values.set(token, value)
    return value
  }
}

/** Whether the text is a valid header value: printable ASCII without a space at either end (RFC 9110 §5.5). */
const isSendable = (text: unknown): text is string =>
  typeof text === "string" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

const unsendable = (path: string) =>
  Exit.fail(new TokenResponseError({ problems: [{ path, expected: "printable ASCII" }] }))
