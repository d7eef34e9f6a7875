/** `store-api call`: an authorized request. Standard input and the response are streamed. */
import { STATUS_CODES } from "node:http"
import * as HttpClient from "@effect/platform/HttpClient"
import { type HttpClientError, isHttpClientError } from "@effect/platform/HttpClientError"
import type { HttpClientRequest } from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import * as AuthorizedHttpClient from "@store-api/core/AuthorizedHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { httpError, noResponseError, statusError, systemCode } from "../../CommandError.js"
import { timeOf, type Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { originOf, redirectRemedy } from "../../redirect.js"
import { readForApi, type Settings } from "../../settings/settings.js"
import { nameOf } from "../../token/httpClient.js"
import { make as makeProvider } from "../../token/provider.js"
import { printBody, saveBody } from "./body.js"
import type { callFlags } from "./flags.js"
import { makeRequest } from "./request.js"

type FlagValues = Values<typeof callFlags>

export const call = (flagValues: FlagValues, path: string) =>
  Effect.gen(function*() {
    const request = yield* makeRequest(flagValues, path)
    const duration = flagValues.timeout === undefined
      ? Duration.infinity
      : yield* timeOf("--timeout", flagValues.timeout)
    const settings = yield* readForApi(flagValues)
    yield* Effect.timeoutFail(Effect.scoped(execute(flagValues, settings, request)), {
      duration,
      onTimeout: () =>
        noResponseError(
          `The call took longer than ${flagValues.timeout ?? ""}, the time of --timeout.`
        )
    })
  })

const execute = (flagValues: FlagValues, settings: Settings, request: HttpClientRequest) =>
  Effect.gen(function*() {
    const { http, provider } = yield* makeProvider(settings, flagValues)
    const rejections = yield* Ref.make(0)
    const client = yield* AuthorizedHttpClient.make({
      ...settings,
      apiUrl: settings.apiUrl ?? ""
    })
      .pipe(
        Effect.provideService(AccessTokenProvider, {
          ...provider,
          invalidate: (token) =>
            Effect.zipRight(
              Ref.update(rejections, (count) => count + 1),
              provider.invalidate(token)
            )
        }),
        Effect.updateService(
          HttpClient.HttpClient,
          HttpClient.transform((send, request) => output.whileWaiting(nameOf(request), send))
        ),
        Effect.provide(http)
      )
    const response = yield* client.execute(request)
    const host = yield* Host
    const isTerminal = host.process.stdout.isTTY === true
    if (flagValues.include) {
      yield* output.write(
        "stdout",
        isTerminal ? output.visible(formatHead(response)) : formatHead(response)
      )
    }
    const hasOwn = flagValues.header.some((header) => /^authorization:/i.test(header))
    const why = response.status === 401 && !hasOwn
      ? whyRejected(yield* Ref.get(rejections), settings)
      : ""
    // 304 answers a condition of the caller's own header.
    const isError = response.status >= 300 && response.status !== 304
    const target = originOf(response.headers["location"], settings.apiUrl)
    const end = response.status >= 400 || target === undefined
      ? `.${why}`
      : ` to ${target}. ${redirectRemedy(settings, response)}`
    const problem = `HTTP ${formatStatus(response)}${end}`
    const failure = (flagValues.fail ? statusError : httpError)(problem)
    if (isError) host.process.exitCode = failure.code
    const file = flagValues.output ?? "-"
    const writeBody = file === "-" ? printBody(response, isTerminal) : saveBody(response, file)
    yield* Effect.tapError(writeBody, () => isError ? output.problem(problem) : Effect.void)
    if (isError) return yield* failure
  }).pipe(Effect.mapError((error) => {
    if (error._tag === "CommandError") return error
    return isHttpClientError(error)
      ? noResponseError(whyNoResponse(error, settings))
      : settings.explain(error)
  }))

const formatStatus = ({ status }: HttpClientResponse): string =>
  `${status} ${STATUS_CODES[status] ?? ""}`.trimEnd()

/** Explains a final 401 by the number of tokens that were rejected in this run. The first may be an older one. */
const whyRejected = (rejections: number, { nameOf }: Settings): string => {
  const addresses = `${nameOf("apiUrl")} and ${nameOf("authUrl")}`
  return [
    " The API says that another token would not help, because the client may not do this.",
    " A body from standard input can be sent only once, so the next run acquires another token.",
    ` A new token was rejected too: check that ${addresses} belong to the same environment.`
  ][Math.min(rejections, 2)] ?? ""
}

/** The client has joined cookies by commas, and their dates contain commas too. */
const betweenCookies = /, (?=[\w!#$%&'*+.^`|~-]+=)/

const formatHead = (response: HttpClientResponse): string => {
  const lines = Object.entries(response.headers).flatMap(([name, value]) => {
    const values = name === "set-cookie" ? value.split(betweenCookies) : [value]
    return values.map((value) => `${name}: ${value}\n`)
  })
  return `HTTP/1.1 ${formatStatus(response)}\n${lines.join("")}\n`
}

const whyNoResponse = (error: HttpClientError, settings: Settings): string => {
  const code = systemCode(error.cause)
  const name = code === undefined ? "" : ` (${code})`
  if (error._tag === "ResponseError") {
    return `The response of the API broke off${name}. Try again.`
  }
  return error.reason === "InvalidUrl"
    ? `The path cannot be joined with ${settings.nameOf("apiUrl")}. Start it with a slash.`
    : `Cannot reach the API${name}. Run store-api check with the same path.`
}
