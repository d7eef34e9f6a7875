/** The child's side of `childProcess.ts`. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"

export interface Request {
  readonly id: number
  readonly order: unknown
}

export interface Reply {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

/** Performs the orders of the parent process, concurrently, until the parent ends. */
export const serve = (
  perform: (order: never) => Effect.Effect<unknown, { readonly _tag: string }>
): void => {
  process.on("message", ({ id, order }: Request) => {
    const reply = (result: Omit<Reply, "id">) => process.send?.({ id, ...result })
    // The parent sends only the orders that its program understands.
    void Effect.runPromise(Effect.either(Effect.suspend(() => perform(order as never)))).then(
      (result) =>
        reply(Either.isRight(result) ? { value: result.right } : { error: result.left._tag }),
      (defect: unknown) => reply({ error: String(defect) })
    )
  })
  process.once("disconnect", () => process.exit())
}
