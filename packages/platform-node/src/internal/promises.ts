import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { toError } from "./toError.js"

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

/**
 * Runs effects over a layer as promises that reject with the error itself, and at once when they are aborted. It
 * creates no `AbortSignal`, because that of jsdom and happy-dom is not one for Node.
 */
export const make = <R>(layer: Layer.Layer<R, unknown>): Promises<R> => {
  const runtime = ManagedRuntime.make(layer)
  /** Each ends a task that is running. */
  const endings = new Set<(error: unknown) => void>()
  let closed: TokenRequestError | undefined
  return {
    run: (begin) =>
      // eslint-disable-next-line no-restricted-syntax -- a promise is what callers want
      new Promise((resolve, reject) => {
        const { effect, onFailure = constVoid, signal } = begin()
        const fail = (error: unknown) => {
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a signal has any reason
          reject(error)
          onFailure(error)
        }
        if (closed !== undefined || signal?.aborted === true) {
          fail(closed ?? signal?.reason)
          return
        }
        let interrupt: () => void = constVoid
        const end = (error: unknown) => {
          endings.delete(end)
          fail(error)
          interrupt()
        }
        const abort = () => end(signal?.reason)
        endings.add(end)
        signal?.addEventListener("abort", abort)
        // Its exit has the error itself. In Effect 3, `runPromise` rejects with one that has no `_tag`.
        interrupt = runtime.runCallback(effect, {
          onExit: (exit) => {
            endings.delete(end)
            signal?.removeEventListener("abort", abort)
            Exit.match(exit, {
              // In Effect 3, a failure within a span is a `Proxy` of the error, which cannot be cloned.
              onFailure: (cause) => fail(toError(Cause.originalError(Cause.squash(cause)))),
              onSuccess: resolve
            })
          }
        })
        // The first steps of the effect run before `runCallback` returns, and may abort it.
        if (!endings.has(end)) interrupt()
      }),
    dispose: () => {
      const error = closed ??= new TokenRequestError({ reason: "Closed", attempts: 0 })
      endings.forEach((end) => end(error))
      return runtime.dispose()
    }
  }
}
