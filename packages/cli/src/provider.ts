/** Acquires tokens. `token` loads it only if the cached token cannot be used. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { type AccessToken, remaining } from "@store-api/core/AccessToken"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as TokenSource from "@store-api/core/TokenSource"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as flags from "./flags.js"
import { version } from "./Host.js"
import * as output from "./output.js"
import type { Settings } from "./settings.js"
import { cached, forget, shared } from "./tokens.js"

type Caching = Pick<flags.Values<typeof flags.token>, "force-refresh" | "no-cache">

/** A provider over the cached token and the endpoint, and the HTTP client of both. */
export const make = (settings: Settings, caching: Caching) =>
  Effect.gen(function*() {
    const http = yield* Layer.build(layerHttp(settings))
    const endpoint = yield* Effect.provide(TokenEndpoint.make(settings), http)
    const source = caching["no-cache"]
      ? endpoint
      : yield* cachedSource(settings, endpoint, caching["force-refresh"])
    // No early renewal, because the end of the run would interrupt it.
    const provider = yield* AccessTokenProvider.make({ refreshAhead: 0 }).pipe(
      Effect.provideService(TokenSource.TokenSource, source)
    )
    const forgetCached = (token: AccessToken) =>
      caching["no-cache"] ? Effect.void : Effect.ignore(forget(settings, token))
    return {
      http,
      provider: {
        ...provider,
        get: output.whileWaiting("a token", provider.get),
        // Also removes the token from the cache, because this run may end without another one.
        invalidate: (token: AccessToken) => Effect.zipRight(forgetCached(token), provider.invalidate(token))
      }
    }
  })

/** Acquires a token for a run that needs nothing else. */
export const acquireToken = (settings: Settings, caching: Caching) =>
  make(settings, caching).pipe(
    Effect.flatMap(({ provider }) => provider.get),
    Effect.scoped,
    Effect.mapError((error) => error._tag === "Fault" ? error : settings.explain(error))
  )

/** A source of the cached token or a new one, which is then cached. `force`: not the token that is cached now. */
const cachedSource = (settings: Settings, endpoint: TokenSource.Service, force: boolean) =>
  Effect.gen(function*() {
    const acquire = yield* shared(settings, endpoint.acquire, {
      ...settings.store,
      // A token stays until its replacement is stored, because other runs may have no other meanwhile.
      remove: () => Effect.succeed(true)
    })
    return TokenSource.make((acquisition) =>
      Effect.gen(function*() {
        const found = Option.flatten(yield* Effect.option(cached(settings)))
        if (Option.isNone(found)) return yield* acquire(TokenSource.missing)
        if (force) return yield* acquire({ reason: "Refresh", replacing: found })
        if (Option.isSome(acquisition.replacing)) return yield* acquire(acquisition)
        // A new token, if this one expires soon. As in the provider, it may take half of the remaining lifetime.
        const longest = Duration.times(yield* remaining(found.value), 0.5)
        const inTime = Effect.timeout(acquire(acquisition), longest)
        return yield* Effect.orElse(inTime, () => Effect.succeed(found.value))
      })
    )
  })

/** Headers, body and query may hold secrets. */
export const nameOf = ({ method, url }: HttpClientRequest.HttpClientRequest): string =>
  `${method} ${url.replace(/\?.*/s, "")}`

/** The rest of a URL may repeat the request. */
export const originOf = (location: string | undefined, base?: string): string | undefined =>
  location !== undefined && URL.canParse(location, base) && /^https?:$/.test(new URL(location, base).protocol)
    ? new URL(location, base).origin
    : undefined

/** What `call` and `check` say about a redirect of the API. */
export const redirectRemedy = ({ apiUrl, nameOf }: Settings, { headers }: HttpClientResponse): string =>
  (originOf(headers["location"], apiUrl) === originOf("", apiUrl)
    ? "Use the path that call --include shows"
    : `Set ${nameOf("apiUrl")} to the API itself`) + ", because the token follows no redirect."

/** Reports a request and its outcome, even if a time limit interrupts it. */
const reported = <E, R>(sent: Effect.Effect<HttpClientResponse, E, R>, request: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(Clock.currentTimeMillis, (start) =>
    Effect.onExit(sent, (exit) => {
      const outcome = Exit.match(exit, { onFailure: () => "no response", onSuccess: ({ status }) => String(status) })
      const report = (end: number) => output.note(`${nameOf(request)}: ${outcome} (${end - start} ms)`)
      return Effect.flatMap(Clock.currentTimeMillis, report)
    }))

/** The HTTP client of a run, with its own User-Agent, but without trace headers, because nobody collects the traces. */
export const layerHttp = ({ verbose }: { readonly verbose: boolean }) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) =>
      (verbose ? HttpClient.transform(client, reported) : client).pipe(
        HttpClient.withTracerPropagation(false),
        HttpClient.mapRequest((request) =>
          ["store-api", undefined].includes(request.headers["user-agent"])
            ? HttpClientRequest.setHeader(request, "user-agent", `store-api/${version()}`)
            : request
        )
      ))
  ).pipe(Layer.provide(NodeHttp.layer()))
