/** The script of faults. Tests append steps, and requests consume them. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { EmulatorError } from "../EmulatorError.js"
import type { Fault, Script } from "../Fault.js"
import type { Kind } from "../RecordedRequest.js"
import * as Scenario from "../Scenario.js"
import * as rules from "./rules.js"
import type { Settings } from "./settings.js"

export type FaultQueue = ReturnType<typeof make>

const wholeTimes: rules.Rule = (value) =>
  value === Infinity
    ? undefined
    : rules.wholeNumber(1, Infinity, "must be a whole number from 1, or Infinity")(value)

const onRequest = {
  on: rules.oneOf("token", "api"),
  times: wholeTimes,
  scenario: rules.optional(rules.text)
}

const onConnection = { ...onRequest, on: rules.oneOf("connection") }

const isBytes = (value: unknown) => value instanceof Uint8Array

const bytes: rules.Rule = (value) => isBytes(value) ? undefined : "must be a text or bytes"

const body: rules.Rule = (value) =>
  isBytes(value) ? undefined : "must be a text, bytes or a bomb of 1 to 1024 megabytes"

const fields: rules.Rule = (value) => rules.record(value) ?? rules.json(value)

const ending = rules.oneOf("Close", "Reset", "Silence")

const length: rules.Rule = (value) =>
  Predicate.isNumber(value) && value >= 0 ? undefined : "must be a number from 0, or Infinity"

const redirectTargets = rules.oneOf("elsewhere", "itself", "loop")

const redirectTarget: rules.Rule = (value) =>
  Predicate.isReadonlyRecord(value)
    ? rules.optional(rules.headerValue)(value["location"])
    : redirectTargets(value)

/** Rules for the fields of each step. */
const stepRules: {
  readonly [Tag in Fault["_tag"]]: rules.Rules<Omit<Extract<Fault, { _tag: Tag }>, "_tag">>
} = {
  Answer: {
    ...onRequest,
    delay: rules.duration,
    status: rules.status,
    headers: rules.headers,
    body
  },
  Delay: { ...onRequest, delay: rules.duration },
  Hang: onRequest,
  Amend: { ...onRequest, fields, headers: rules.headers },
  Gzip: onRequest,
  Continue: onRequest,
  Revoke: onRequest,
  ForgetNonces: onRequest,
  Echo: { ...onRequest, status: rules.status },
  RetryDate: { ...onRequest, status: rules.status, wait: rules.duration },
  Drip: { ...onRequest, status: rules.status, every: rules.positiveDuration },
  Flood: { ...onRequest, status: rules.status, bytes: length },
  Redirect: { ...onRequest, status: rules.wholeNumber(300, 399), to: redirectTarget },
  Raw: { ...onRequest, bytes, ending },
  Stale: onRequest,
  Connection: { ...onConnection, bytes, ending },
  Tls: { ...onConnection, flaw: rules.oneOf("SelfSigned", "Expired", "WrongHost", "Tls1.1") }
}

const checkStep = (option: string, step: Fault): Effect.Effect<void, EmulatorError> =>
  Effect.gen(function*() {
    yield* rules.check(option, step, rules.record)
    const { _tag } = step
    if (!Object.hasOwn(stepRules, _tag)) {
      return yield* rules.unusable(option, "must come from a function of Fault")
    }
    yield* rules.checkRecord(option, step, stepRules[_tag])
  })

/** The steps of a script, which are named if it is a scenario. */
const stepsOf = (source: Script | Scenario.Name) =>
  Effect.gen(function*() {
    if (typeof source !== "string") return { steps: [source].flat(), options: {} }
    if (!Object.hasOwn(Scenario.all, source)) {
      return yield* rules.unusable(
        "scenario",
        "must be a name that the emulator's --list prints"
      )
    }
    const { options, script } = Scenario.all[source]
    return {
      steps: [script].flat().map((step): Fault => ({ ...step, scenario: source })),
      options
    }
  })

/** Returns the options of a scenario that the emulator does not have, each with the value that it needs. */
export const missingOptions = (
  { clientAuthentication, dpop, tls }: Scenario.Requirements,
  settings: Settings
) => {
  const { methods } = settings
  const required = [
    ["tls", tls, settings.tls],
    ["dpop", dpop, settings.dpop === dpop],
    [
      "clientAuthentication",
      clientAuthentication,
      methods.some((method) => method === clientAuthentication)
    ]
  ] as const
  return required.filter(([, value, isMet]) => value !== undefined && !isMet)
}

export const make = (settings: Settings) => {
  const queue: Array<Fault> = []
  return {
    /** If a step cannot be performed, fails and appends none. */
    append: (
      source: Script | Scenario.Name,
      times?: number
    ): Effect.Effect<void, EmulatorError> =>
      Effect.gen(function*() {
        const { options, steps } = yield* stepsOf(source)
        yield* Effect.forEach(steps, (step, index) => checkStep(`script[${index}]`, step))
        yield* rules.check("times", times, rules.optional(wholeTimes))
        const isTls = steps.some(({ _tag }) => _tag === "Tls")
        const [missing] = missingOptions(isTls ? { ...options, tls: true } : options, settings)
        if (missing !== undefined) {
          const [option, value = ""] = missing
          return yield* rules.unusable(option, `must be ${value} for this fault`)
        }
        for (const step of steps) queue.push({ ...step, times: times ?? step.times })
      }),
    /**
     * Returns the next step for this place. A `Stale` step applies only to a connection that had an earlier request.
     */
    take: (place: Kind | "connection", isReused = false): Fault | undefined => {
      const index = queue.findIndex(({ _tag, on }) =>
        on === place && (isReused || _tag !== "Stale")
      )
      const fault = queue[index]
      if (fault) {
        queue.splice(
          index,
          1,
          ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : [])
        )
      }
      return fault
    },
    pending: Effect.sync((): ReadonlyArray<Fault> => [...queue]),
    clear: Effect.sync(() => void queue.splice(0))
  }
}
