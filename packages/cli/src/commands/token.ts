/** The commands that need only a token. */
import { constants } from "node:os"
import { isatty } from "node:tty"
import { type AccessToken, remaining } from "@store-api/core/AccessToken"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { configuration, Fault, notStarted, systemCode, unavailable } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import type { acquireToken } from "../provider.js"
import * as settings from "../settings.js"
import * as tokens from "../tokens.js"

type Given = flags.Values<typeof flags.token>

/** Prints a token for another program. */
export const token = (given: Given) =>
  Effect.gen(function*() {
    const found = yield* settings.read(given)
    const cached = given["force-refresh"] || given["no-cache"] ? Option.none() : yield* tokens.cached(found)
    const token = Option.isSome(cached) && Duration.greaterThan(yield* remaining(cached.value), longestLeeway)
      ? cached.value
      : yield* acquire(found, given)
    if ((yield* Host).process.stdout.isTTY === true) {
      yield* Effect.logWarning("The token is on the screen, where other people may see it. A pipe is safer.")
    }
    yield* output.line(textOf(given, token, yield* Clock.currentTimeMillis))
  })

/** No provider makes callers wait for a renewal when more than this is left. */
const longestLeeway = Duration.seconds(30)

/** The only place where a token is printed. */
const textOf = ({ format }: Given, token: AccessToken, now: number): string => {
  const { scope, tokenType } = token
  const value = Redacted.value(token.value)
  if (format === "header") return `Authorization: ${tokenType} ${value}`
  if (format !== "json") return value
  return JSON.stringify({ access_token: value, token_type: tokenType, ...expiryOf(token, now), scope })
}

const expiryOf = ({ expiresAt }: AccessToken, now: number) => ({
  expires_at: DateTime.formatIso(expiresAt),
  expires_in: Math.max(0, Math.floor((expiresAt.epochMillis - now) / 1000))
})

/** Loads the provider and its HTTP client only if they may be needed, because other programs wait for a token. */
const acquire = (...args: Parameters<typeof acquireToken>) =>
  Effect.flatMap(Effect.promise(() => import("../provider.js")), ({ acquireToken }) => acquireToken(...args))

/** `store-api run`: another program, with a token in its environment. */
export const run = (given: flags.Values<typeof flags.run>, [command = "", ...args]: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const token = yield* acquire(yield* settings.read(given), given)
    // Loaded only for this command, so that the others start sooner.
    const { spawn } = yield* Effect.promise(() => import("node:child_process"))
    const { env } = (yield* Host).process
    const variables = { ...env, STORE_API_ACCESS_TOKEN: Redacted.value(token.value) }
    const code = yield* Effect.async<number, Fault>((resume) => {
      // The program decides when it ends. A terminal sends Ctrl+C to it as well. Standard input stays unopened, because
      // Node would make a pipe non-blocking for the program, too.
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
        const others = process.listeners(signal)
        process.on(signal, () => signal === "SIGINT" && isatty(0) ? undefined : child.kill(signal))
        others.forEach((other) => process.off(signal, other))
      }
      const child = spawn(command, args, { stdio: "inherit", env: variables })
      // Node emits some errors of the system, and throws others, such as ENOTDIR.
      child.on("error", (error) => resume(Effect.die(error)))
      child.on("close", (code, signal) => {
        resume(Effect.succeed(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
      })
    }).pipe(
      Effect.catchAllDefect((error) => notStarted(`Cannot run ${command} (${systemCode(error) ?? "no reason given"}).`))
    )
    if (code !== 0) return yield* new Fault({ code, message: "" })
  })

const none = "No valid token is cached for this service, client and secret."

/** `store-api status`, which sends nothing. */
export const status = (given: flags.Values<typeof flags.check>) =>
  Effect.gen(function*() {
    const found = yield* readWithCache(given)
    const { folder, profile } = found
    const token = Option.getOrUndefined(yield* tokens.cached(found))
    const times = token && {
      acquired_at: DateTime.formatIso(token.acquiredAt),
      ...expiryOf(token, yield* Clock.currentTimeMillis)
    }
    if (given.json) {
      yield* output.line(JSON.stringify({ profile, folder, cached: token !== undefined, ...times }))
    } else {
      if (profile !== undefined) yield* output.line(`profile  ${profile}`)
      yield* output.line(`folder   ${folder}`)
      if (times !== undefined) {
        const left = output.inWords(times.expires_in * 1000)
        yield* output.line(`token    valid for ${left}, until ${times.expires_at.slice(0, 19)}Z`)
      }
    }
    if (token === undefined) return yield* unavailable(none)
  })

/** `store-api logout`, which sends nothing. */
export const logout = (given: flags.Values<typeof flags.common>) =>
  Effect.gen(function*() {
    const found = yield* readWithCache(given)
    const token = yield* tokens.cached(found)
    yield* Effect.transposeMapOption(token, (token) => tokens.forget(found, token))
    if (Option.isSome(yield* tokens.cached(found))) {
      return yield* configuration(`Cannot remove the token from ${found.folder}. Check that you may write to it.`)
    }
    yield* output.note(Option.isSome(token) ? "The cached token is removed." : none)
  })

/** A cache that cannot be read is a failure here, and a miss elsewhere. */
const readWithCache = (given: flags.Values<typeof flags.common>) =>
  Effect.tap(settings.read(given), ({ folder, store }) =>
    store.get("").pipe(
      Effect.timeoutFail({ duration: tokens.storeTimeout, onTimeout: () => ({ reason: "no response in time" }) }),
      Effect.mapError(({ reason }) => configuration(`Cannot use the cache in ${folder} (${reason}).`))
    ))
