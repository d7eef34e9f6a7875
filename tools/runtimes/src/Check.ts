/** A check: a statement, and an effect that fails, or ends with a defect, if the statement is false. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import {
  type AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  StoreAuth
} from "@store-api/core"
import type { Scenario } from "@store-api/emulator"
import { Cause, Console, Context, Effect, Exit, Layer, Redacted, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { Order, Setup, Started, View } from "./laboratory.js"

export interface Check {
  readonly name: string
  readonly run: Effect.Effect<void, unknown, Laboratory | Scope.Scope>
}

export const check = (
  name: string,
  body: () => Generator<
    YieldWrap<Effect.Effect<unknown, unknown, Laboratory | Scope.Scope>>,
    void,
    never
  >
): Check => ({ name, run: Effect.gen(body) })

const shown = (value: unknown) =>
  value instanceof Error ? String(value) : JSON.stringify(value)

export const equal = (what: string, actual: unknown, expected: unknown): void => {
  if (shown(actual) !== shown(expected)) {
    throw new Error(`${what}: ${shown(actual)}, not ${shown(expected)}`)
  }
}

export const holds = (what: string, condition: boolean): void => equal(what, condition, true)

/** The error of an effect, whose success is a defect. */
export const errorOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.flip(effect).pipe(
    Effect.catchAll(() => Effect.dieMessage("it succeeded where it had to fail"))
  )

/** An error as `Tag` or `Tag, reason`. */
export const named = (error: { readonly _tag: string }) =>
  "reason" in error ? `${error._tag}, ${String(error.reason)}` : error._tag

/** The URL of the laboratory, which runs an emulator for each check. */
export class Laboratory extends Context.Tag("runtimes/Laboratory")<Laboratory, string>() {}

/** An error of the laboratory is a defect, because it is not the result of a check. */
const ask = <A>(order: Order): Effect.Effect<A, never, Laboratory> =>
  Effect.flatMap(Laboratory, (url) =>
    Effect.promise(async () => {
      const signal = AbortSignal.timeout(10_000)
      const response = await fetch(url, {
        method: "POST",
        body: JSON.stringify(order),
        signal
      })
      if (!response.ok) {
        throw new Error(`The laboratory cannot ${order.name}: status ${response.status}`)
      }
      return await response.json() as A
    }))

/** Starts an emulator for one check, until its scope closes. */
export const startEmulator = (setup: Setup = {}) =>
  Effect.gen(function*() {
    const started = yield* Effect.acquireRelease(
      ask<Started>({ name: "start", ...setup }),
      ({ id }) => ask({ name: "stop", id })
    )
    const { id } = started
    const view = ask<View>({ name: "view", id })
    return {
      ...started,
      view,
      tokenRequests: Effect.map(view, ({ requests }) =>
        requests.filter(({ kind }) => kind === "token").length),
      revoke: ask({ name: "revoke", id }),
      /** Applies the steps of a scenario, each as often as the scenario says or `times` times. */
      fail: (scenario: Scenario.Name, times?: number) =>
        ask({ name: "fail", id, scenario, times })
    }
  })

/** The layer over the runtime's own `fetch`, as in an application. */
export const storeAuth = (
  options: StoreAuth.Options
): Effect.Effect<
  StoreAuth.StoreAuth,
  AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError,
  Scope.Scope
> =>
  Effect.map(
    Layer.build(Layer.provide(StoreAuth.layer(options), FetchHttpClient.layer)),
    (context) => ({
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      client: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    })
  )

type Options = Pick<StoreAuth.Options, "authUrl" | "apiUrl" | "endpoint" | "client">

/** An emulator and its client. */
export const store = ({ tls, tokenLife, ...given }: Setup & Partial<Options> = {}) =>
  Effect.gen(function*() {
    const emulator = yield* startEmulator({ tls, tokenLife })
    const { clientId, clientSecret, url } = emulator
    const options: StoreAuth.SecretOptions = {
      authUrl: url,
      apiUrl: url,
      clientId,
      clientSecret: Redacted.make(clientSecret),
      ...given
    }
    return { emulator, options, ...yield* storeAuth(options) }
  })

/** The result of a check, with a `problem` if it failed. */
export interface Outcome {
  readonly name: string
  readonly problem?: string
}

/** Runs one check with the laboratory at this URL. A check that hangs fails. */
export const run = ({ name, run }: Check, laboratory: string): Effect.Effect<Outcome> =>
  run.pipe(
    Effect.scoped,
    Effect.timeout("60 seconds"),
    Effect.provideService(Laboratory, laboratory),
    Effect.exit,
    Effect.map(Exit.match({
      onSuccess: (): Outcome => ({ name }),
      onFailure: (cause): Outcome => ({ name, problem: Cause.pretty(cause) })
    }))
  )

/** Runs all checks, prints a line of JSON for each, and then their number. */
export const runAll = (checks: ReadonlyArray<Check>, laboratory: string): Promise<void> => {
  const print = (value: unknown) => Console.log(JSON.stringify(value))
  // Each check has its own emulator, and most of its time is waiting.
  return Effect.forEach(checks, (check) => Effect.tap(run(check, laboratory), print), {
    concurrency: 6
  }).pipe(
    Effect.zipRight(print({ declared: checks.length })),
    Effect.runPromise
  )
}
