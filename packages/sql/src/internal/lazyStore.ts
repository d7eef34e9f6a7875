import type * as SqlClient from "@effect/sql/SqlClient"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import { type Service, TokenStore, type TokenStoreError } from "@store-api/core/TokenStore"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import { reasonOf } from "./reason.js"
import { noFailure, type Operation, retry } from "./retry.js"
import { fromClient } from "./store.js"

/** Creates the client in the background, and again in a later operation if that failed. */
export const make = <E>(
  client: Layer.Layer<SqlClient.SqlClient, E>,
  table: string
): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<Scope.Scope>()
    const scope = yield* Effect.scope
    const fibers = yield* Scope.make()
    const lastFailure = noFailure()
    // Does not wait, because a client that connects to a silent server cannot be interrupted.
    yield* Effect.addFinalizer((exit) => Effect.forkDaemon(Scope.close(fibers, exit)))

    const build: Effect.Effect<Service, E | ConfigurationError> = Effect.gen(function*() {
      const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      return yield* Layer.buildWithScope(client, own).pipe(
        Effect.flatMap((built) => Effect.provide(fromClient(table, true, lastFailure), built)),
        Effect.onError((cause) =>
          Effect.zipRight(forget, Scope.close(own, Exit.failCause(cause)))
        )
      )
    }).pipe(
      // The client belongs to the layer, so it must not inherit a transaction of the first caller.
      Effect.mapInputContext((_: Context.Context<never>) => context)
    )

    /** Starts a build, unless there is one that has not failed. */
    const [start, forget] = yield* Effect.cachedInvalidateWithTTL(
      Effect.forkIn(Effect.interruptible(build), fibers),
      Duration.infinity
    )

    /** Waits for the build, which a time limit of the operation does not stop. */
    const store = Effect.uninterruptible(start).pipe(
      Effect.flatMap(Fiber.await),
      Effect.flatten,
      Effect.catchAllCause((cause) => {
        const error = Cause.squash(cause)
        return Effect.fail(
          error instanceof ConfigurationError ? "unsupported database" : reasonOf(error)
        )
      })
    )
    const use = <A>(
      operation: Operation,
      run: (store: Service) => Effect.Effect<A, TokenStoreError>
    ) => Effect.flatMap(retry(operation, store, lastFailure), run)

    // So the time limit of the first operation usually does not include the connection.
    yield* Effect.forkScoped(
      Effect.interruptible(Effect.ignore(use("get", () => Effect.void)))
    )

    return TokenStore.of({
      get: (key) => use("get", (store) => store.get(key)),
      put: (key, entry, life) => use("put", (store) => store.put(key, entry, life)),
      remove: (key, entry) => use("remove", (store) => store.remove(key, entry)),
      lease: (key, duration) => use("lease", (store) => store.lease(key, duration)),
      lastFailure: Ref.get(lastFailure)
    })
  })
