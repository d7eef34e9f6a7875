/** `store-api check`: the steps to a token and to the API, up to the first fault. */
import { Help } from "commander"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as connection from "../check/connection.js"
import * as responses from "../check/responses.js"
import { Fault, noResponse } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import { endCooldown } from "../provider.js"
import { read } from "../settings.js"
import { checkedPath } from "./call.js"

/** A step that ended, as `--json` prints it. */
interface Ended extends connection.Result {
  readonly step: string
  readonly ok: boolean
  readonly millis: number
}

type Report = (ended: Ended) => Effect.Effect<void, Fault>

export const run = (given: flags.Values<typeof flags.check>, path: string) =>
  Effect.gen(function*() {
    yield* checkedPath(path)
    const ended: Array<Ended> = []
    const collect = (one: Ended) => Effect.sync(() => void ended.push(one))
    const exit = yield* Effect.exit(steps(given, path, given.json ? collect : print))
    if (given.json) yield* output.line(JSON.stringify({ ok: ended.every(({ ok }) => ok), steps: ended }))
    return yield* exit
  })

const steps = (given: flags.Values<typeof flags.check>, path: string, report: Report) =>
  Effect.gen(function*() {
    const attempts: responses.Attempts = []
    // Read before the step, whose time would otherwise include the prompt for the secret.
    const { settings } = yield* step(report, "configuration", yield* Effect.either(configured(given, path)))
    const authUrl = new URL(settings.authUrl)
    yield* reach(report, authUrl, settings.nameOf("authUrl"))
    const clock = Effect.suspend(() => {
      const comparison = responses.compareClocks(attempts)
      return comparison === undefined ? Effect.void : step(report, "clock", comparison)
    })
    const request = Effect.gen(function*() {
      const { provider, token } = yield* responses.requestToken(settings, attempts)
      const lifetime = output.inWords(token.expiresAt.epochMillis - token.acquiredAt.epochMillis)
      return { provider, detail: `a token valid for ${lifetime}${responses.earlierAttempts(attempts)}` }
    })
    const { provider } = yield* Effect.onError(step(report, "token request", request), () => Effect.ignore(clock))
    yield* endCooldown(settings)
    yield* clock
    if (path === "" || settings.apiUrl === undefined) return
    const apiUrl = new URL(settings.apiUrl)
    if (apiUrl.origin !== authUrl.origin) {
      yield* Effect.mapError(reach(report, apiUrl, settings.nameOf("apiUrl"), "API "), () => noResponse(""))
    }
    yield* step(report, "API call", responses.callApi(settings, apiUrl.href, provider, path))
  }).pipe(Effect.scoped)

/** The settings, if the library accepts them. */
const configured = (given: flags.Values<typeof flags.check>, path: string) =>
  read(given, path === "" ? "ignored" : "required").pipe(
    Effect.tap(responses.checkSettings),
    Effect.mapBoth({
      onFailure: ({ code, message }) =>
        new connection.Failed({ detail: "a setting is missing or cannot be used", remedy: message, code }),
      onSuccess: (settings) => ({ settings, detail: `${settings.origins}; ${responses.tokenRequest(settings)}` })
    })
  )

/** Tries each step to the server by itself, so that the report names the one that fails. */
const reach = (report: Report, url: URL, setting: string, server = "") =>
  Effect.gen(function*() {
    const proxy = connection.proxyFor(url, (yield* Host).process.env)
    const { url: first, variable } = proxy ?? { url, variable: setting }
    const prefix = proxy === undefined ? server : "proxy "
    yield* step(report, `${prefix}name lookup`, connection.lookup(first, variable))
    const direct = yield* step(report, `${prefix}connection`, connection.connect(first, variable))
    const { socket } = proxy === undefined ? direct : yield* step(report, "proxy tunnel", connection.tunnel(proxy, url))
    if (url.protocol === "https:") yield* step(report, `${server}TLS`, connection.handshake(socket, url, setting))
  }).pipe(Effect.scoped)

const step = <A extends connection.Result, R>(
  report: Report,
  name: string,
  effect: Effect.Effect<A, connection.Failed, R>
) =>
  Effect.gen(function*() {
    const [took, outcome] = yield* Effect.timed(Effect.either(output.whileWaiting(`the step "${name}"`, effect)))
    const millis = Math.round(Duration.toMillis(took))
    const { detail, remedy } = Either.merge(outcome)
    yield* report({ step: name, ok: Either.isRight(outcome), millis, detail, remedy })
    return yield* Either.mapLeft(outcome, ({ code }) => new Fault({ code, message: "" }))
  })

const help = Object.assign(new Help(), { minWidthToWrap: 20 })

/** Wraps and indents a step on a terminal. A pipe has no columns. */
const print: Report = ({ detail, millis, ok, remedy, step }) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { columns = Infinity } = host.process.stdout
    const word = ok ? output.painted(host, "stdout", "green", "ok  ") : output.painted(host, "stdout", "red", "FAIL")
    const said = yield* output.forPerson("stdout", `${detail}\n${remedy ?? ""}`.trimEnd())
    const text = `${word} ${step.padEnd(17)}${`${millis} ms`.padStart(8)}   ${said}`
    yield* output.line(help.boxWrap(text, columns - 5).replaceAll("\n", "\n     "))
  })
