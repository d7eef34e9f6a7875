/** `store-api check [PATH]`: the way to a token and to the API, step by step, up to the first fault. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as apiPath from "../apiPath.js"
import * as answers from "../check/answers.js"
import * as connection from "../check/connection.js"
import { proxyFor } from "../check/proxy.js"
import { Failed } from "../check/Step.js"
import { Fault, fromLibrary } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import * as settings from "../settings.js"
import { lasting } from "../wording.js"

type Given = flags.Values<typeof flags.check>

export const run = (given: Given, path: Option.Option<string>) =>
  Effect.gen(function*() {
    if (Option.isSome(path)) yield* apiPath.checked(path.value)
    const attempts: answers.Attempts = yield* Ref.make<ReadonlyArray<Option.Option<answers.Seen>>>([])
    const { authUrl, ...found } = yield* step("configuration", configured(given, path), ({ authUrl, origins }) =>
      [...origins, answers.tokenRequest(authUrl)].join(", "))
    yield* reach(authUrl, "STORE_API_AUTH_URL")
    const { token } = yield* step(
      "token request",
      Effect.zipWith(
        answers.requestToken({ ...found, authUrl: authUrl.href }, attempts),
        Effect.suspend(() =>
          answers.before(attempts)
        ),
        (token, before) => ({ token, before })
      ),
      ({ before, token: { acquiredAt, expiresAt } }) =>
        `a token that is good for ${lasting(expiresAt.epochMillis - acquiredAt.epochMillis)}${before}`
    ).pipe(Effect.onError(() => Effect.ignore(compareClocks(attempts))))
    yield* compareClocks(attempts)
    if (Option.isNone(path) || Option.isNone(found.apiUrl)) return
    const apiUrl = found.apiUrl.value
    if (apiUrl.origin !== authUrl.origin) yield* reach(apiUrl, "STORE_API_URL")
    yield* step("API call", answers.callApi({ ...found, apiUrl: apiUrl.href }, token, path.value), (said) => said)
  })

/** The settings, when endpoint and clients can be made of them: what the library refuses is refused here. */
const configured = (given: Given, path: Option.Option<string>) =>
  Effect.gen(function*() {
    const found = Option.isNone(path)
      ? yield* settings.readWithAnyApi(given)
      : yield* Effect.map(settings.readWithApi(given), (found) => ({ ...found, apiUrl: Option.some(found.apiUrl) }))
    yield* Effect.mapError(answers.canBeAsked(found), fromLibrary)
    return { ...found, authUrl: new URL(found.authUrl), apiUrl: Option.map(found.apiUrl, (url) => new URL(url)) }
  }).pipe(
    Effect.mapError(({ code, message }) =>
      new Failed({ what: "something is missing or cannot be used", remedy: message, code: code as Failed["code"] })
    )
  )

/** Each step to the server alone, so that the fault has a name. */
const reach = (url: URL, setting: string) =>
  Effect.gen(function*() {
    const proxy = proxyFor(url, (yield* Host).process.env)
    const [to, where] = Option.match(proxy, {
      onNone: () => [url, setting] as const,
      onSome: ({ url, variable }) => [url, variable] as const
    })
    const prefix = Option.isSome(proxy) ? "proxy " : ""
    yield* step(`${prefix}name lookup`, connection.lookup(to, where), (said) => said)
    const direct = connection.connect(to, where)
    const first = yield* step(`${prefix}connection`, direct, ({ remoteAddress, remotePort }) =>
      `${remoteAddress ?? ""} port ${remotePort ?? ""}`)
    const socket = Option.isNone(proxy)
      ? first
      : yield* step("proxy tunnel", connection.tunnel(proxy.value, url), () =>
        `to ${url.host}`)
    if (url.protocol === "https:") {
      yield* step("TLS", connection.handshake(socket, url, setting), (said) =>
        said)
    }
  }).pipe(Effect.scoped)

const compareClocks = (attempts: answers.Attempts) =>
  Effect.flatMap(
    answers.lastAnswer(attempts),
    Option.match({
      onNone: () => Effect.void,
      onSome: (seen) => step("clock", answers.compareClocks(seen), (said) => said)
    })
  )

/** Tries, and prints what came of it. */
const step = <A, R>(
  name: string,
  effect: Effect.Effect<A, Failed, R>,
  describe: (value: A) => string
): Effect.Effect<A, Fault, R> =>
  Effect.gen(function*() {
    const startedAt = yield* Clock.currentTimeNanos
    const outcome = yield* Effect.either(effect)
    const took = `${Math.round(Number((yield* Clock.currentTimeNanos) - startedAt) / 1e6)} ms`
    const print = (word: string, said: string) => output.line(`${word} ${name.padEnd(17)}${took.padStart(8)}   ${said}`)
    if (outcome._tag === "Right") {
      yield* print(yield* output.green("stdout", "ok  "), describe(outcome.right))
      return outcome.right
    }
    const { code, remedy, what } = outcome.left
    yield* print(yield* output.red("stdout", "FAIL"), what)
    yield* output.line(`     ${remedy}`)
    return yield* new Fault({ code, message: "" })
  })
