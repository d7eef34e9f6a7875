/** `store-api check`: the steps to a token and to the API, up to the first fault. */
import { isLoopback } from "@store-api/core/AuthorizedHttpClient"
import { Help } from "commander"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { checkPath } from "../../apiPath.js"
import { Fault, noResponse } from "../../Fault.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { read, readForApi } from "../../settings/settings.js"
import * as connection from "./connection.js"
import type { checkFlags } from "./flags.js"
import * as responses from "./responses.js"

/** A step that ended, as `--json` prints it. */
interface Ended {
  readonly step: string
  readonly ok: boolean
  readonly millis: number
  readonly detail: string
  readonly remedy?: string | undefined
}

type Report = (ended: Ended) => Effect.Effect<void, Fault>

export const check = (given: Values<typeof checkFlags>, path: string) =>
  Effect.gen(function*() {
    yield* checkPath(path)
    const ended: Array<Ended> = []
    const collect = (one: Ended) => Effect.sync(() => void ended.push(one))
    const exit = yield* Effect.exit(
      Effect.scoped(steps(given, path, given.json ? collect : print))
    )
    if (given.json) {
      yield* output.line(JSON.stringify({ ok: ended.every(({ ok }) => ok), steps: ended }))
    }
    return yield* exit
  })

const steps = (given: Values<typeof checkFlags>, path: string, report: Report) =>
  Effect.gen(function*() {
    // Read before the step, whose time would otherwise include the prompt for the secret.
    const configured = yield* Effect.either(configure(given, path))
    const library = yield* step(report, "configuration", configured)
    const { settings } = library
    const auth = connection.targetOf(new URL(settings.authUrl), settings.nameOf("authUrl"))
    yield* reach(report, auth)
    const request = step(report, "token request", responses.requestToken(library))
    const clock = step(report, "clock", responses.compareClocks(library))
    yield* Effect.tapError(request, () => Effect.ignore(clock))
    yield* clock
    if (path === "" || settings.apiUrl === undefined) return
    const api = connection.targetOf(new URL(settings.apiUrl), settings.nameOf("apiUrl"))
    if (api.url.origin !== auth.url.origin) {
      yield* Effect.mapError(reach(report, api, "API "), () => noResponse(""))
    }
    yield* step(report, "API call", responses.callApi(library, path))
  })

const configure = (given: Values<typeof checkFlags>, path: string) =>
  Effect.gen(function*() {
    const settings = yield* (path === "" ? read(given) : readForApi(given))
    const library = yield* responses.libraryOf(settings)
    const url = `${settings.authUrl.replace(/\/+$/, "")}/v1/oauth/accesstoken`
    return { ...library, detail: `${settings.origins}; POST ${url}` }
  }).pipe(
    Effect.mapError((fault) =>
      connection.failed("a setting is missing or cannot be used", fault)
    )
  )

/** Tries each step to the server by itself, so that the report names the one that fails. */
const reach = (report: Report, server: connection.Target, kind = "") =>
  Effect.gen(function*() {
    const proxy = isLoopback(server.url) ? undefined : yield* connection.proxyFor(server)
    const [first, prefix] = proxy === undefined ? [server, kind] : [proxy, "proxy "]
    yield* step(report, `${prefix}name lookup`, connection.lookup(first))
    const direct = yield* step(report, `${prefix}connection`, connection.connect(first))
    const { socket } = proxy === undefined
      ? direct
      : yield* step(report, "proxy tunnel", connection.tunnel(direct.socket, proxy, server))
    if (server.url.protocol === "https:") {
      yield* step(report, `${kind}TLS`, connection.handshake(socket, server))
    }
  }).pipe(Effect.scoped)

/** A step whose effect succeeds with what it found. */
const step = <A extends { readonly detail: string; readonly fault?: undefined }, R>(
  report: Report,
  name: string,
  effect: Effect.Effect<A, connection.Failed, R>
) =>
  Effect.gen(function*() {
    const [took, outcome] = yield* Effect.timed(
      Effect.either(output.whileWaiting(`the step "${name}"`, effect))
    )
    const { detail, fault } = Either.merge(outcome)
    const millis = Math.round(Duration.toMillis(took))
    yield* report({
      step: name,
      ok: fault === undefined,
      millis,
      detail,
      remedy: fault?.message
    })
    return yield* Either.mapLeft(outcome, ({ fault: { code } }) =>
      new Fault({ code, message: "" }))
  })

const help = Object.assign(new Help(), { minWidthToWrap: 20 })

/** Wraps and indents a step on a terminal. A pipe has no columns. */
const print: Report = ({ detail, millis, ok, remedy, step }) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { columns = Infinity } = host.process.stdout
    const word = ok
      ? output.painted(host, "stdout", "green", "ok  ")
      : output.painted(host, "stdout", "red", "FAIL")
    const said = yield* output.forPerson("stdout", `${detail}\n${remedy ?? ""}`.trimEnd())
    const text = `${word} ${step.padEnd(17)}${`${millis} ms`.padStart(8)}   ${said}`
    yield* output.line(help.boxWrap(text, columns - 5).replaceAll("\n", "\n     "))
  })
