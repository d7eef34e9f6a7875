/**
 * The platform's cryptography runs in threads, in a time that is not virtual. It stays what it is; while a simulation runs,
 * its answers come in the order of the questions, and it can be told when none is open.
 */
export interface Cryptography {
  /** Whether an answer is awaited. */
  readonly isBusy: () => boolean
  /** Resolves when no answer is awaited any more, and all who awaited one have it. */
  readonly idle: () => Promise<void>
  readonly restore: () => void
}

const operations = ["decrypt", "deriveBits", "deriveKey", "encrypt", "importKey"] as const

type Operation = (...parameters: ReadonlyArray<unknown>) => Promise<unknown>

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

export const inOrder = (): Cryptography => {
  const { subtle } = globalThis.crypto
  let open = 0
  let last: Promise<unknown> = Promise.resolve()

  const before = operations.map((name) => Object.getOwnPropertyDescriptor(subtle, name))
  for (const name of operations) {
    const original = subtle[name].bind(subtle) as Operation
    const value: Operation = (...parameters) => {
      open += 1
      const answer = original(...parameters)
      const inTurn = last.then(() => answer)
      last = inTurn.catch(() => undefined).then(() => {
        open -= 1
      })
      // Until its turn has come nobody else looks at a failure.
      answer.catch(() => undefined)
      return inTurn
    }
    Object.defineProperty(subtle, name, { configurable: true, value })
  }

  return {
    isBusy: () => open > 0,
    idle: async () => {
      while (open > 0) {
        await last
        await turn()
      }
    },
    restore: () => {
      for (const [index, name] of operations.entries()) {
        const descriptor = before[index]
        if (descriptor === undefined) Reflect.deleteProperty(subtle, name)
        else Object.defineProperty(subtle, name, descriptor)
      }
    }
  }
}
