/** Runs one row: a client against an emulator. Records the outcome. */
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import { Emulator, type RecordedRequest, type Scenario } from "@store-api/emulator"
import { Context, Duration, Effect, Exit, Layer, type Option, Schedule, Scope } from "effect"
import { waitAtMost } from "../../src/internal/waitAtMost.js"
import type { Client } from "../support/clients.js"

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
}

export interface Run {
  readonly client: Client
  readonly timing: Timing
  readonly scenario: Scenario.Scenario
  readonly emulator?: Emulator.Options | undefined
  readonly store?: Partial<StoreAuth.SecretOptions> | undefined
}

export interface Actors {
  readonly emulator: Emulator.Service
  readonly provider: AccessTokenProvider.Service
  readonly authorized: AuthorizedHttpClient.Service
}

/** Waits until no socket is open, for at most `longest`. Returns the number of open sockets. */
export const socketsLeft = (
  emulator: Emulator.Service,
  longest: Duration.DurationInput = "30 seconds"
) =>
  emulator.connections.pipe(
    Effect.repeat({ while: (open) => open > 0, schedule: Schedule.spaced("10 millis") }),
    Effect.timeoutOption(longest),
    Effect.zipRight(emulator.connections)
  )

/** Runs the calls of an application against a scenario, closes its layer, and records the outcome. */
export const observe = <A, E>(
  run: Run,
  act: (actors: Actors) => Effect.Effect<A, E, Scope.Scope>
) =>
  Effect.scoped(Effect.gen(function*() {
    const emulator = yield* Emulator.make({ ...run.emulator, ...run.scenario.options })
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
    const context = yield* Layer.build(Layer.provide(store, run.client.layer(emulator.ca)))
      .pipe(Scope.extend(scope))
    const actors = {
      emulator,
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      authorized: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    }
    const [elapsed, exit] = yield* Effect.scoped(act(actors)).pipe(
      Effect.exit,
      Effect.asSome,
      waitAtMost(run.timing.deadline + 4 * margin, Effect.succeedNone),
      Effect.timed
    )
    yield* Scope.close(scope, Exit.void).pipe(waitAtMost("30 seconds", Effect.void))

    return {
      exit,
      elapsed: Duration.toMillis(elapsed),
      socketsLeft: yield* socketsLeft(emulator),
      requests: yield* emulator.requests,
      elsewhere: yield* emulator.elsewhere.requests
    }
  }))
