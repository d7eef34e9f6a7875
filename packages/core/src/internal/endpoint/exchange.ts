/** One token request and its response. */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { AccessToken } from "../../AccessToken.js"
import {
  type AccessTokenError,
  TokenExpiredError,
  type TokenRequestError,
  TokenResponseError,
  withRetryAt
} from "../../AccessTokenError.js"
import type { TokenRequest } from "../../TokenRequest.js"
import * as TokenResponse from "../../TokenResponse.js"
import * as boundedBody from "../boundedBody.js"
import * as extra from "../extra.js"
import * as httpErrors from "../httpErrors.js"
import * as instant from "../instant.js"
import * as lifetime from "../lifetime.js"
import * as manualRedirect from "../manualRedirect.js"
import { userAgent } from "../userAgent.js"
import { waitAtMost } from "../waitAtMost.js"
import { type Attempt, failedRequest, fromHttpClientError, refusal } from "./failure.js"
import { refusalBodyMillis } from "./limits.js"
import * as retryAfter from "./retryAfter.js"
import { parseJson, queryOf } from "./sentRequest.js"

export interface Endpoint {
  readonly client: HttpClient.HttpClient.With<
    HttpClientError.HttpClientError | TokenRequestError,
    Scope.Scope
  >
  readonly url: string
  readonly request: TokenRequest
  /** In milliseconds. */
  readonly attemptTimeout: number
  readonly maxLife: number
  readonly maxResponseBytes: number
}

/** All headers, because the span of the HTTP client records them, and a response header may repeat a secret. */
const everyName = [/./]

/**
 * The given client for token requests. Fails with `Redirect`, and returns any other response. Its span records no
 * header. There is none for a request with a query, which it would record too.
 */
export const clientOf = (given: HttpClient.HttpClient): Effect.Effect<Endpoint["client"]> =>
  Effect.map(manualRedirect.make, (withoutRedirects) =>
    HttpClient.transform(
      HttpClient.withTracerPropagation(HttpClient.withScope(given), false),
      (response, request) =>
        withoutRedirects(
          queryOf(request).length > 0 ? Effect.withTracerEnabled(response, false) : response
        ).pipe(
          Effect.locally(Headers.currentRedactedNames, everyName),
          Effect.catchAll(filteredResponse),
          // A client that follows redirects has sent the credentials elsewhere, and responds with another request.
          Effect.filterOrFail(
            (response) => !isRedirect(response) && response.request.url === request.url,
            () => failedRequest("Redirect")
          )
        )
    ))

/** The given client may turn error statuses into errors. */
const filteredResponse = (error: HttpClientError.HttpClientError) => {
  const response = httpErrors.statusResponse(error)
  return response === undefined ? Effect.fail(error) : Effect.succeed(response)
}

const isRedirect = ({ status }: HttpClientResponse.HttpClientResponse): boolean =>
  status === 0 || (status >= 300 && status < 400) // 0: a browser's opaque redirect

/** `node:http` and undici send no `User-Agent`, and some firewalls refuse requests without one. */
const complete = (
  request: HttpClientRequest.HttpClientRequest,
  url: string
): HttpClientRequest.HttpClientRequest => {
  const [, query = ""] = /^[^?#]*\?([^#]*)/.exec(request.url) ?? []
  return HttpClientRequest.setUrl(request, url).pipe(
    HttpClientRequest.appendUrlParams(new URLSearchParams(query)),
    HttpClientRequest.setHeaders({
      "user-agent": userAgent,
      // Not every HTTP client decodes what a server compresses if it is not told otherwise (RFC 9110 §12.5.3).
      "accept-encoding": "identity",
      ...request.headers,
      accept: "application/json"
    })
  )
}

/** Makes and sends one request, and reads its response. */
export const exchange = (
  endpoint: Endpoint,
  attempt: Pick<Attempt, "credentials" | "replacing">
): Effect.Effect<AccessToken, AccessTokenError> =>
  Effect.gen(function*() {
    const request = complete(
      yield* endpoint.request.request(attempt.credentials),
      endpoint.url
    )
    const start = yield* instant.now
    const response = yield* endpoint.client.execute(request)
    // It comes from a proxy, never from the endpoint (RFC 9110 §15.5.8).
    if (response.status === 407) return yield* failedRequest("Proxy")
    const text = yield* textOf(endpoint, response)
    const end = yield* instant.now
    const { authentication } = endpoint.request
    const refused = refusal({ ...attempt, authentication, request }, response, text)
    if (refused !== undefined) {
      const wait = Option.fromNullable(retryAfter.milliseconds(response.headers, end.wall))
      return yield* withRetryAt(
        refused,
        Option.map(wait, (wait) => DateTime.unsafeMake(end.wall + wait))
      )
    }
    if (text === undefined) return yield* failedRequest("TooLarge")
    const decodedResponse = Either.mapLeft(
      TokenResponse.decode(text, endpoint.request.tokenType),
      (error) => isCompressed(response, text) ? compressedResponse : error
    )
    const decoded = yield* decodedResponse
    const life = lifetime.lifeOf(decoded.expires_in, endpoint.maxLife)
    const took = end.monotonic - start.monotonic
    // The earlier of two readings, because the wall clock may have been set since.
    const sentAt = Math.min(start.wall, Math.ceil(end.wall - took))
    const token = tokenOf(endpoint, text, decoded, sentAt, sentAt + life)
    if (sentAt + life > end.wall) return token
    // The machine slept, or its clock was set forward: another request returns a token that is valid.
    if (took < life) return yield* failedRequest("Timeout")
    return yield* new TokenExpiredError({
      reason: "DeadOnArrival",
      expiredAt: token.expiresAt,
      checkedAt: DateTime.unsafeMake(end.wall)
    })
  }).pipe(
    Effect.scoped,
    // An error that the client turned into a defect holds the request, and so the secret.
    Effect.catchAllDefect((defect) =>
      HttpClientError.isHttpClientError(defect) ? Effect.fail(defect) : Effect.die(defect)
    ),
    Effect.catchIf(HttpClientError.isHttpClientError, fromHttpClientError),
    waitAtMost(endpoint.attemptTimeout, failedRequest("Timeout")),
    Effect.withSpan("TokenEndpoint.request", { captureStackTrace: false })
  )

/**
 * The body, or undefined if it is too large. The status of a refusal is enough: a body that breaks or never ends must
 * not turn it into a transport error.
 */
const textOf = (
  { attemptTimeout, maxResponseBytes }: Endpoint,
  response: HttpClientResponse.HttpClientResponse
): Effect.Effect<string | undefined, httpErrors.BodyError> => {
  const text = boundedBody.read(response, maxResponseBytes)
  return response.status < 400 ? text : text.pipe(
    waitAtMost(Math.min(refusalBodyMillis, attemptTimeout / 2), Effect.succeed(undefined)),
    Effect.orElseSucceed(() => undefined)
  )
}

/** Whether the HTTP client did not decode the body. One that does may keep the header. */
const isCompressed = (
  { headers }: HttpClientResponse.HttpClientResponse,
  text: string
): boolean =>
  !/^(identity)?$/i.test(headers["content-encoding"] ?? "") &&
  Option.isNone(parseJson(text))

const compressedResponse = new TokenResponseError({
  problems: [{
    path: "",
    expected: "uncompressed, because the HTTP client does not decode it"
  }]
})

/** The token of a response. Both times are those of the wall clock. */
const tokenOf = (
  { request }: Endpoint,
  text: string,
  response: TokenResponse.TokenResponse,
  sentAt: number,
  expiresAt: number
): AccessToken =>
  new AccessToken({
    value: response.access_token,
    tokenType: request.tokenType ?? "Bearer",
    scope: Option.getOrElse(response.scope, () => ""),
    acquiredAt: DateTime.unsafeMake(sentAt),
    expiresAt: DateTime.unsafeMake(expiresAt),
    applicationName: response.application_name,
    developerEmail: response["developer.email"],
    issuedAt: response.issued_at,
    clientId: response.client_id,
    extra: extraOf(text)
  })

/** The fields of the body that the schema of the response does not have. */
const extraOf = (text: string): extra.Extra => {
  const json = Option.getOrUndefined(parseJson(text))
  const fields = Predicate.isReadonlyRecord(json)
    ? Object.entries(json).filter(([name]) =>
      !Object.hasOwn(TokenResponse.TokenResponse.fields, name)
    )
    : []
  return fields.length === 0 ? extra.none : Redacted.make(Object.fromEntries(fields))
}
