/**
 * A worker that shuts down gracefully: on SIGTERM or SIGINT it starts no further order, finishes the current one within
 * ten seconds, and signs off from the store. A layer shuts down after the programs that use it, so calls with a token
 * work until the end.
 */
import { HttpClient } from "@effect/platform"
import { NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect, Fiber, Layer } from "effect"

const StoreAuthLive = NodeStoreAuth.layerConfig()

const post = (path: string) =>
  Effect.gen(function*() {
    const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
    const { status } = yield* client.post(path)
    yield* Console.log(`${path}: ${status}`)
  }).pipe(
    // A finalizer is not interruptible. `disconnect` makes the time limit work there.
    Effect.disconnect,
    Effect.timeout("10 seconds"),
    Effect.catchAll((error) => Console.error(`${path}: ${error.message}`))
  )

/** The last call of the process, after the work has ended and before StoreAuthLive shuts down. */
const SignOffLive = Layer.scopedDiscard(
  Effect.flatMap(
    AuthorizedHttpClient.AuthorizedHttpClient,
    (client) =>
      Effect.addFinalizer(() =>
        Effect.provideService(post("/sign-off"), AuthorizedHttpClient.AuthorizedHttpClient, client)
      )
  )
)

/** On an interruption, waits until the effect has ended. It runs in its own fiber, where its timeout still works. */
const toItsEnd = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), (fiber) =>
      Effect.onInterrupt(
        restore(Fiber.join(fiber)),
        () => Effect.zipRight(Console.log("shutting down: no further order"), Fiber.await(fiber))
      ))
  )

const work = Effect.iterate(1, {
  while: () => true,
  body: (number) => Effect.as(toItsEnd(post(`/orders/${number}`)), number + 1)
})

NodeRuntime.runMain(Effect.provide(work, Layer.provideMerge(SignOffLive, StoreAuthLive)))
