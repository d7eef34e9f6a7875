/** Adds a proof to every request (RFC 9449 §4), and repeats a request once if an API wants a nonce. */
import * as Headers from "@effect/platform/Headers"
import type * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { sha256, type SigningKey } from "./signingKey.js"

type Sending = Effect.Effect<
  HttpClientResponse.HttpClientResponse,
  HttpClientError.HttpClientError
>

/** Returns a function that adds proofs to a client. The clients of one key share the nonces. */
export const withProofs = (
  key: SigningKey
): (client: HttpClient.HttpClient) => HttpClient.HttpClient => {
  /** The last nonce of each origin, because every server has its own (RFC 9449 §8.2). */
  const nonces = new Map<string, string>()

  /** Adds a proof with the given nonce, or with the last one of the origin. */
  const prove = (
    request: HttpClientRequest.HttpClientRequest,
    nonce: string | undefined
  ): Effect.Effect<HttpClientRequest.HttpClientRequest> =>
    Effect.gen(function*() {
      // The client refuses such a URL.
      const url = Option.getOrUndefined(parseUrl(request.url))
      if (url === undefined) return request
      const { origin, pathname } = url
      const token = boundToken(request)
      const proof = yield* key.sign({
        jti: globalThis.crypto.randomUUID(),
        htm: request.method,
        htu: origin + pathname,
        iat: Math.floor((yield* Clock.currentTimeMillis) / 1000),
        nonce: nonce ?? nonces.get(origin),
        ath: token === undefined ? undefined : yield* sha256(token)
      })
      return HttpClientRequest.setHeader(request, header, proof)
    })

  return (client) => {
    const send = (
      request: HttpClientRequest.HttpClientRequest,
      ownNonce: string | undefined
    ): Sending => {
      const receive = (
        response: HttpClientResponse.HttpClientResponse | undefined,
        result: Sending
      ): Sending => {
        const nonce = response?.headers["dpop-nonce"]
        if (response === undefined || nonce === undefined) return result
        nonces.set(originOf(response), nonce)
        // The next proof of the origin has this nonce too, but another response may have replaced it by then.
        return ownNonce === undefined && isRepeatable(request) && isChallenge(response)
          ? Effect.zipRight(release(response), send(request, nonce))
          : result
      }
      // Signs after the `mapRequest` of the client, which may change the URL, and again for each of its retries.
      const provingClient = HttpClient.mapRequestEffect(
        client,
        (request) => prove(request, ownNonce)
      )
      return Effect.matchEffect(provingClient.execute(request), {
        onSuccess: (response) => receive(response, Effect.succeed(response)),
        onFailure: (error) => receive(responseIn(error), Effect.fail(error))
      })
    }
    return HttpClient.makeWith<never, never, HttpClientError.HttpClientError, never>(
      Effect.flatMap((request) =>
        Effect.locallyWith(
          send(request, undefined),
          Headers.currentRedactedNames,
          (names) => [...names, header]
        )
      ),
      Effect.succeed
    )
  }
}

const header = "dpop"

/** The token in the request. A token request has none. */
const boundToken = ({ headers }: HttpClientRequest.HttpClientRequest): string | undefined =>
  /^DPoP (\S+)$/i.exec(headers["authorization"] ?? "")?.[1]

/** A nonce belongs to the server that sent it, which may be another one if the client follows redirects. */
const originOf = ({ request }: HttpClientResponse.HttpClientResponse): string =>
  new URL(request.url).origin

/** Whether the request is one to an API, and its body can be sent again. A raw body may contain a stream. */
const isRepeatable = (request: HttpClientRequest.HttpClientRequest): boolean =>
  boundToken(request) !== undefined && repeatable.includes(request.body._tag)

const repeatable: ReadonlyArray<HttpBody.HttpBody["_tag"]> = [
  "Empty",
  "Uint8Array",
  "FormData"
]

/** Whether the API wants a nonce (RFC 9449 §9). */
const parseUrl = Option.liftThrowable((url: string) => new URL(url))

const isChallenge = ({ headers, status }: HttpClientResponse.HttpClientResponse): boolean =>
  status === 401 && /\buse_dpop_nonce\b/.test(headers["www-authenticate"] ?? "")

/** The response in the error of a client that fails because of a status, as `filterStatusOk` does. */
const responseIn = (
  error: HttpClientError.HttpClientError
): HttpClientResponse.HttpClientResponse | undefined =>
  "response" in error ? error.response : undefined

/** Pieces of a body. An error message has fewer. */
const mostDrained = 16

/**
 * Starts to free the connection for the repeat: reads a short body, and cancels one that is longer or takes more than a
 * second. The caller does not wait, because a body may never end.
 */
const release = ({ stream }: HttpClientResponse.HttpClientResponse): Effect.Effect<void> =>
  Stream.runDrain(Stream.take(stream, mostDrained)).pipe(
    Effect.timeout("1 second"),
    Effect.ignore,
    Effect.interruptible,
    Effect.forkDaemon,
    Effect.asVoid
  )
