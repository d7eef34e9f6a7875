/** `store-api check`: the steps to a token and to the API, up to the first failure. */
import { isLoopback } from "@store-api/core/AuthorizedHttpClient"
import { Help } from "commander"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { checkPath } from "../../apiPath.js"
import { CommandError, noResponseError } from "../../CommandError.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { readForApi, readForToken } from "../../settings/settings.js"
import * as connection from "./connection.js"
import type { checkFlags } from "./flags.js"
import * as responses from "./responses.js"

/** A step that ended, as `--json` prints it. */
interface StepResult {
  readonly step: string
  readonly ok: boolean
  readonly millis: number
  readonly detail: string
  readonly remedy?: string | undefined
}

type Report = (result: StepResult) => Effect.Effect<void, CommandError>

export const check = (flagValues: Values<typeof checkFlags>, path: string) =>
  Effect.gen(function*() {
    yield* checkPath(path)
    const results: Array<StepResult> = []
    const collect = (result: StepResult) => Effect.sync(() => void results.push(result))
    const exit = yield* Effect.exit(
      Effect.scoped(runSteps(flagValues, path, flagValues.json ? collect : print))
    )
    if (flagValues.json) {
      yield* output.line(JSON.stringify({ ok: results.every(({ ok }) => ok), steps: results }))
    }
    return yield* exit
  })

const runSteps = (flagValues: Values<typeof checkFlags>, path: string, report: Report) =>
  Effect.gen(function*() {
    // Read before the step, whose time would otherwise include the prompt for the secret.
    const configuration = yield* Effect.either(configure(flagValues, path))
    const library = yield* runStep(report, "configuration", configuration)
    const { settings } = library
    const auth = connection.targetOf(new URL(settings.authUrl), settings.nameOf("authUrl"))
    yield* reach(report, auth)
    const request = runStep(report, "token request", responses.requestToken(library))
    const clock = runStep(report, "clock", responses.compareClocks(library))
    yield* Effect.tapError(request, () => Effect.ignore(clock))
    yield* clock
    if (path === "" || settings.apiUrl === undefined) return
    const api = connection.targetOf(new URL(settings.apiUrl), settings.nameOf("apiUrl"))
    if (api.url.origin !== auth.url.origin) {
      yield* Effect.mapError(reach(report, api, "API "), () => noResponseError(""))
    }
    yield* runStep(report, "API call", responses.callApi(library, path))
  })

const configure = (flagValues: Values<typeof checkFlags>, path: string) =>
  Effect.gen(function*() {
    const settings = yield* (path === "" ? readForToken(flagValues) : readForApi(flagValues))
    const library = yield* responses.libraryOf(settings)
    const url = `${settings.authUrl.replace(/\/+$/, "")}/v1/oauth/accesstoken`
    return { ...library, detail: `${settings.origins}; POST ${url}` }
  }).pipe(
    Effect.mapError((error) =>
      connection.failStep("a setting is missing or cannot be used", error)
    )
  )

/** Tries each step to the server by itself, so that the report names the one that fails. */
const reach = (report: Report, server: connection.Target, kind = "") =>
  Effect.gen(function*() {
    const proxy = isLoopback(server.url) ? undefined : yield* connection.proxyFor(server)
    const [first, prefix] = proxy === undefined ? [server, kind] : [proxy, "proxy "]
    yield* runStep(report, `${prefix}name lookup`, connection.lookUp(first))
    const direct = yield* runStep(report, `${prefix}connection`, connection.connect(first))
    const { socket } = proxy === undefined
      ? direct
      : yield* runStep(
        report,
        "proxy tunnel",
        connection.openTunnel(direct.socket, proxy, server)
      )
    if (server.url.protocol === "https:") {
      yield* runStep(report, `${kind}TLS`, connection.performHandshake(socket, server))
    }
  }).pipe(Effect.scoped)

/** A step whose effect succeeds with what it found. */
const runStep = <A extends { readonly detail: string; readonly error?: undefined }, R>(
  report: Report,
  name: string,
  effect: Effect.Effect<A, connection.StepFailure, R>
) =>
  Effect.gen(function*() {
    const [took, outcome] = yield* Effect.timed(
      Effect.either(output.whileWaiting(`the step "${name}"`, effect))
    )
    const { detail, error } = Either.merge(outcome)
    const millis = Math.round(Duration.toMillis(took))
    yield* report({
      step: name,
      ok: error === undefined,
      millis,
      detail,
      remedy: error?.message
    })
    return yield* Either.mapLeft(outcome, ({ error: { code } }) =>
      new CommandError({ code, message: "" }))
  })

const help = Object.assign(new Help(), { minWidthToWrap: 20 })

/** Wraps and indents a step on a terminal. A pipe has no columns. */
const print: Report = ({ detail, millis, ok, remedy, step }) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { columns = Infinity } = host.process.stdout
    const word = ok
      ? output.paint(host, "stdout", "green", "ok  ")
      : output.paint(host, "stdout", "red", "FAIL")
    const sentences = output.visible(`${detail}\n${remedy ?? ""}`.trimEnd())
    const message = yield* output.forPerson("stdout", sentences)
    const text = `${word} ${step.padEnd(17)}${`${millis} ms`.padStart(8)}   ${message}`
    const lines = help.boxWrap(text, columns - 5).replaceAll("\n", "\n     ")
    yield* output.write("stdout", `${lines}\n`)
  })
