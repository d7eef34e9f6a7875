/** Runs one row: a client against an emulator. Records the outcome. */
import { inspect } from "node:util"
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import { Emulator, type RecordedRequest, type Scenario } from "@store-api/emulator"
import {
  Cause,
  Context,
  Duration,
  Effect,
  Exit,
  Layer,
  Logger,
  LogLevel,
  Option,
  Redacted,
  Schedule,
  Scope,
  type Tracer
} from "effect"
import { bounded } from "../../src/internal/bounded.js"
import type { Client } from "../support/clients.js"
import { isFailure } from "../support/effectLine.js"
import { renderings } from "../support/renderings.js"
import { observed } from "../support/telemetry.js"

interface Traces {
  readonly record: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly text: Effect.Effect<string>
}

/** Renders what exporters send of a span, including its failure. */
const line = (span: Tracer.Span) =>
  inspect([span.name, [...span.attributes]], { depth: 10 }) +
  (span.status._tag === "Ended" && Exit.isFailure(span.status.exit)
    ? Cause.pretty(span.status.exit.cause, { renderErrorCause: true })
    : "")

const makeTraces: Effect.Effect<Traces> = Effect.map(Effect.tracer, (native) => {
  const lines: Array<string> = []
  const spans: Array<Tracer.Span> = []
  const loggers = [Logger.jsonLogger, Logger.logfmtLogger, Logger.stringLogger].map((logger) =>
    Logger.map(logger, (text) => void lines.push(text))
  )
  const logger = Logger.make((options) => loggers.forEach((logger) => logger.log(options)))
  const tracer = observed(native, (span) => void spans.push(span))
  return {
    record: (effect) =>
      effect.pipe(
        Effect.withTracer(tracer),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All)
      ),
    text: Effect.sync(() => [...lines, ...spans.map(line)].join("\n"))
  }
})

/** Whether a text contains a value: as it is, or encoded as a form, JSON, base64, hexadecimal or bytes. */
const holds = (text: string, value: string): boolean => {
  const packed = text.replace(/\s/g, "")
  return [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    Buffer.from(value).toString("base64").replace(/=+$/, ""),
    Buffer.from(value).toString("hex"),
    Buffer.from(value).join(",")
  ].some((form) => packed.includes(form.replace(/\s/g, "")))
}

/** The time limits of the client, in milliseconds. */
export interface Timing {
  readonly attemptTimeout: number
  readonly deadline: number
}

/** How long a run may exceed its deadline, in milliseconds, since the machine may be busy with other rows. */
export const margin = 3000

export interface Observation<A, E> {
  /** `None` if the run did not end in time. */
  readonly exit: Option.Option<Exit.Exit<A, E>>
  readonly elapsed: number
  readonly requests: ReadonlyArray<RecordedRequest.RecordedRequest>
  readonly elsewhere: ReadonlyArray<RecordedRequest.RecordedRequest>
  /** The number of sockets that are open at the server after the client was closed. */
  readonly socketsLeft: number
  /** Whether an error, a log line or a span reveals a secret or a token. */
  readonly leaked: boolean
}

export interface Run {
  readonly client: Client
  readonly timing: Timing
  readonly scenario: Scenario.Scenario
  /** How long after its deadline a run is abandoned, in milliseconds. */
  readonly longest?: number | undefined
  readonly emulator?: Emulator.Options | undefined
  readonly store?: Partial<StoreAuth.SecretOptions> | undefined
}

export interface Actors {
  readonly emulator: Emulator.Service
  readonly provider: AccessTokenProvider.Service
  readonly authorized: AuthorizedHttpClient.Service
}

/** Waits until no socket is open, for at most `longest`. Returns the number of open sockets. */
export const socketsLeft = (emulator: Emulator.Service, longest: Duration.DurationInput = "5 seconds") =>
  emulator.connections.pipe(
    Effect.repeat({ while: (open) => open > 0, schedule: Schedule.spaced("10 millis") }),
    Effect.timeoutOption(longest),
    Effect.zipRight(emulator.connections)
  )

/** Whether the run or one of its results is a defect or an interruption. */
export const isDefect = (exit: unknown): boolean => {
  if (!Exit.isExit(exit)) return false
  if (Exit.isFailure(exit)) return !isFailure(exit.cause)
  return Array.isArray(exit.value) && exit.value.some(isDefect)
}

/** The causes with which the run or its results failed. */
const failuresOf = (exit: unknown): ReadonlyArray<unknown> => {
  if (!Exit.isExit(exit)) return []
  if (Exit.isFailure(exit)) return [exit.cause]
  return Array.isArray(exit.value) ? exit.value.flatMap(failuresOf) : []
}

/** `Tag (Reason)`, or the tag alone for errors whose reason the scenarios do not name. */
export const describeError = (error: { readonly _tag: string }): string =>
  "reason" in error && error._tag !== "TokenExpiredError" && error._tag !== "CredentialsError"
    ? `${error._tag} (${String(error.reason)})`
    : error._tag

/** Runs the calls of an application against a scenario, closes its layer, and records the outcome. */
export const observe = <A, E>(
  run: Run,
  act: (actors: Actors) => Effect.Effect<A, E, Scope.Scope>
) =>
  Effect.scoped(Effect.gen(function*() {
    const emulator = yield* Emulator.make({ ...run.emulator, tls: run.scenario.tls })
    const traces = yield* makeTraces
    yield* emulator.fail(run.scenario.script)

    const scope = yield* Scope.make()
    const store = StoreAuth.layer({
      authUrl: emulator.url,
      apiUrl: emulator.url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Emulator.demoClient.clientSecret,
      endpoint: run.timing,
      ...run.store
    })
    const context = yield* Layer.build(Layer.provide(store, run.client.layer(emulator.ca))).pipe(Scope.extend(scope))
    const actors = {
      emulator,
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      authorized: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    }
    const [elapsed, exit] = yield* Effect.scoped(act(actors)).pipe(
      traces.record,
      Effect.exit,
      Effect.asSome,
      bounded(run.timing.deadline + (run.longest ?? 4 * margin), Effect.succeedNone),
      Effect.timed
    )
    yield* Scope.close(scope, Exit.void).pipe(bounded("5 seconds", Effect.void))

    const failures = Option.match(exit, { onNone: () => [], onSome: failuresOf })
    const shown = failures.map(renderings).join("\n") + (yield* traces.text)
    const hidden = [Emulator.demoClient.clientSecret, ...(yield* emulator.tokens).map(({ value }) => value)]
    return {
      exit,
      elapsed: Duration.toMillis(elapsed),
      socketsLeft: yield* socketsLeft(emulator),
      requests: yield* emulator.requests,
      elsewhere: yield* emulator.elsewhere.requests,
      leaked: hidden.some((value) => holds(shown, Redacted.value(value)))
    }
  }))
