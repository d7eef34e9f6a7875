/** Who sleeps until when: a binary heap, since thousands sleep at once. Of those that wake together, the first to sleep is first. */
export interface Sleeper {
  readonly at: number
  readonly order: number
  /** Gone when it was interrupted. */
  wake: (() => void) | undefined
}

const isBefore = (a: Sleeper, b: Sleeper): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

export class Sleepers {
  readonly #heap: Array<Sleeper> = []
  #added = 0

  add(at: number, wake: () => void): Sleeper {
    const sleeper: Sleeper = { at, order: this.#added, wake }
    this.#added += 1
    this.#rise(sleeper)
    return sleeper
  }

  /** The next to wake; those that were interrupted are passed over. */
  take(): Sleeper | undefined {
    while (true) {
      const first = this.#takeFirst()
      if (first === undefined || first.wake !== undefined) return first
    }
  }

  #rise(sleeper: Sleeper): void {
    const heap = this.#heap
    let index = heap.length
    while (index > 0) {
      const above = (index - 1) >> 1
      const other = heap[above]
      if (other === undefined || !isBefore(sleeper, other)) break
      heap[index] = other
      index = above
    }
    heap[index] = sleeper
  }

  #takeFirst(): Sleeper | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || last === first) return first
    let index = 0
    while (true) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      const next = right !== undefined && left !== undefined && isBefore(right, left) ? right : left
      if (next === undefined || !isBefore(next, last)) break
      heap[index] = next
      index = next === right ? 2 * index + 2 : 2 * index + 1
    }
    heap[index] = last
    return first
  }
}
