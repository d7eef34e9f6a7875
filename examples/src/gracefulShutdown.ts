/**
 * A worker that ends well: on SIGTERM or SIGINT it takes no further work, ends what it has begun, for at most ten seconds,
 * and gives back what it holds. A layer ends after what was built on it, so the tokens outlast the work.
 */
import { NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect, Fiber, Layer } from "effect"

const StoreAuthLive = Layer.merge(
  NodeStoreAuth.layerConfig(),
  Layer.scopedDiscard(Effect.addFinalizer(() => Console.log("tokens and connections are given back")))
)

const order = (number: number) =>
  Effect.gen(function*() {
    yield* Console.log(`order ${number}: begun`)
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const { status } = yield* client.post(`/orders/${number}`)
    yield* Console.log(`order ${number}: ${status}`)
  }).pipe(
    Effect.timeout("10 seconds"),
    Effect.catchAll((error) => Console.error(`order ${number}: ${error._tag}`))
  )

/** An interruption waits for its end. In a fiber of its own, where its own timeout still ends it. */
const toItsEnd = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), (fiber) =>
      Effect.onInterrupt(
        restore(Fiber.join(fiber)),
        () => Effect.zipRight(Console.log("told to stop: no further order is begun"), Fiber.await(fiber))
      ))
  )

const work = Effect.iterate(1, {
  while: () => true,
  body: (number) => Effect.as(toItsEnd(order(number)), number + 1)
})

NodeRuntime.runMain(Effect.provide(work, StoreAuthLive))
