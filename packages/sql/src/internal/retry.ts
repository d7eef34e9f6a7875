import { TokenStoreError } from "@store-api/core/TokenStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"

export type Operation = TokenStoreError["operation"]

/** Why the last attempt of an operation failed, or none if it succeeded. */
export type LastFailure = Ref.Ref<Option.Option<string>>

export const noFailure = (): LastFailure => Ref.unsafeMake(Option.none())

const transient = new Set([
  // A deadlock, a conflict of transactions, or a locked file of SQLite: the statement had no effect.
  "40001",
  "40P01",
  "ER_LOCK_DEADLOCK",
  "ER_CHECKREAD",
  "SQLITE_BUSY",
  // When a statement is interrupted as it ends, `PgClient` cancels the next one of its connection.
  "57014",
  // Other processes use all connections, usually only for a moment.
  "53300",
  "ER_CON_COUNT_ERROR",
  "ER_TOO_MANY_USER_CONNECTIONS"
])

/** Waits between attempts without stopping other fibers, as the driver of SQLite would. */
export const retry = <A>(
  operation: Operation,
  attempt: Effect.Effect<A, string>,
  lastFailure: LastFailure
): Effect.Effect<A, TokenStoreError> =>
  attempt.pipe(
    Effect.tapError((code) => Ref.set(lastFailure, Option.some(code))),
    Effect.retry({
      while: (code) => transient.has(code),
      schedule: Schedule.spaced("200 millis").pipe(
        Schedule.jittered,
        Schedule.upTo("30 seconds")
      )
    }),
    Effect.zipLeft(Ref.set(lastFailure, Option.none())),
    Effect.mapError((reason) => new TokenStoreError({ operation, reason }))
  )
