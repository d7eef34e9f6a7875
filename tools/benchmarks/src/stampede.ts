/** A cold start: many fibers call `get` at once, compared with as many that await one Deferred. */
import { inOwnProcess, type Spread, spread } from "./harness.js"
import type { Measured, Variant } from "./stampedeProcess.js"

export interface Stampede {
  readonly fibers: number
  /** The most token requests that any repetition sent. */
  readonly requests: number
  /** Milliseconds from the first fork until the last fiber is done, with the response sent as soon as all wait. */
  readonly wall: Readonly<Record<Variant, Spread>>
  readonly wallRatio: Spread
  /** Bytes of heap per fiber while all wait. */
  readonly bytes: Readonly<Record<Variant, number>>
  /** The ratio of the bytes of all fibers together. */
  readonly memoryRatio: number
}

const sizes = [1, 10, 100, 1000, 10_000, 100_000]

const repetitions = (fibers: number, quick: boolean): number =>
  Math.ceil((fibers >= 100_000 ? 3 : fibers >= 10_000 ? 8 : 120) / (quick ? 4 : 1))

const measureSize = async (fibers: number, quick: boolean): Promise<Stampede> => {
  const measure = (what: "wall" | Variant, times: number) =>
    inOwnProcess<ReadonlyArray<Measured>>("stampedeProcess.js", [what, `${fibers}`, `${times}`])
  const weighings = fibers >= 100_000 || quick ? 1 : 3
  const walls = await measure("wall", repetitions(fibers, quick))
  const ownMemory = await measure("provider", weighings)
  const plainMemory = await measure("deferred", weighings)
  const wallOf = (variant: Variant) => walls.filter((one) => one.variant === variant).map(({ wall }) => wall)
  const own = wallOf("provider")
  const plain = wallOf("deferred")
  const heapOf = (measured: ReadonlyArray<Measured>) => spread(measured.map(({ heap }) => heap)).median
  return {
    fibers,
    requests: Math.max(...[...walls, ...ownMemory].map(({ requests }) => requests)),
    wall: { provider: spread(own), deferred: spread(plain) },
    wallRatio: spread(own.map((wall, round) => wall / (plain[round] ?? Number.NaN))),
    bytes: { provider: heapOf(ownMemory) / fibers, deferred: heapOf(plainMemory) / fibers },
    memoryRatio: heapOf(ownMemory) / heapOf(plainMemory)
  }
}

export const measureStampede = async (quick: boolean): Promise<ReadonlyArray<Stampede>> => {
  const measured = []
  for (const fibers of sizes.slice(0, quick ? 5 : 6)) measured.push(await measureSize(fibers, quick))
  return measured
}
