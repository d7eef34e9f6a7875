import { setMaxListeners } from "node:events"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

export interface Task<A, R> {
  readonly effect: Effect.Effect<A, unknown, R>
  /** Ends the task at once, with the signal's reason. */
  readonly signal?: AbortSignal
  /** Called if the task fails, even if the effect never started. */
  readonly onFailure?: (error: unknown) => void
}

export interface Promises<R> {
  /** Also rejects with what `begin` throws. */
  readonly run: <A>(begin: () => Task<A, R>) => Promise<A>
  readonly dispose: () => Promise<void>
}

/** Runs effects over a layer as promises that reject with the error itself, and at once when they are aborted. */
export const make = <R>(layer: Layer.Layer<R, unknown>): Promises<R> => {
  const runtime = ManagedRuntime.make(layer)
  const disposal = new AbortController()
  // Every task listens to it.
  setMaxListeners(0, disposal.signal)
  return {
    run: (begin) =>
      // eslint-disable-next-line no-restricted-syntax -- a promise is what callers want
      new Promise((resolve, reject) => {
        const { effect, onFailure = constVoid, signal } = begin()
        const signals = signal === undefined ? [disposal.signal] : [disposal.signal, signal]
        const fail = (error: unknown) => {
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the error, whatever it is
          reject(error)
          onFailure(error)
        }
        const aborted = signals.find((signal) => signal.aborted)
        if (aborted !== undefined) {
          fail(aborted.reason)
          return
        }
        let interrupt: () => void = constVoid
        const abort = ({ target }: Event) => {
          fail((target as AbortSignal).reason) // only signals have this listener
          interrupt()
        }
        signals.forEach((signal) => signal.addEventListener("abort", abort))
        // Its exit has the error itself. In Effect 3, `runPromise` rejects with one that has no `_tag`.
        interrupt = runtime.runCallback(effect, {
          onExit: (exit) => {
            signals.forEach((signal) => signal.removeEventListener("abort", abort))
            Exit.match(exit, {
              onFailure: (cause) => fail(Cause.squash(cause)),
              onSuccess: resolve
            })
          }
        })
        // The first steps of the effect run before `runCallback` returns, and may abort it.
        if (signals.some(({ aborted }) => aborted)) interrupt()
      }),
    dispose: () => {
      disposal.abort(new TokenRequestError({ reason: "Closed", attempts: 0 }))
      return runtime.dispose()
    }
  }
}
