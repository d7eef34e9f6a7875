/**
 * A worker that shuts down gracefully: on SIGTERM or SIGINT it starts no further order, finishes the current one within
 * ten seconds, and signs off from the store. The layer of the tokens ends after the program that uses it, so calls
 * with a token work until the end.
 */
import { NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect, Fiber, Ref } from "effect"
import { HttpClient } from "effect/http"

const post = (path: string) =>
  Effect.gen(function*() {
    const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
    const { status } = yield* client.post(path)
    yield* Console.log(`${path}: ${status}`)
  }).pipe(
    Effect.timeout("10 seconds"),
    Effect.catch((error) => Console.error(`${path}: ${error.message}`))
  )

/** Places one order after the other until it is told to stop. Then it signs off. */
const worker = (isStopping: Ref.Ref<boolean>) =>
  Effect.gen(function*() {
    for (let order = 1; !(yield* Ref.get(isStopping)); order++) yield* post(`/orders/${order}`)
    yield* post("/sign-off")
  })

const program = Effect.gen(function*() {
  const isStopping = yield* Ref.make(false)
  // A daemon is not interrupted together with this program, which waits for it instead.
  const fiber = yield* Effect.forkDetach(worker(isStopping))
  yield* Effect.onInterrupt(
    Fiber.join(fiber),
    () =>
      Console.log("shutting down: no further order").pipe(
        Effect.andThen(Ref.set(isStopping, true)),
        Effect.andThen(Fiber.await(fiber))
      )
  )
})

NodeRuntime.runMain(Effect.provide(program, NodeStoreAuth.layerConfig()))
