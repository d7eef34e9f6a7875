/** The formulas of docs/reference/sharing.md, on virtual time. The pauses between calls are 0 to 60 seconds. */
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenProvider, TokenSource, TokenStore } from "@store-api/core"
import { fullToken, member, settled } from "@store-api/testing/sharing"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Effect, Logger, LogLevel, Random } from "effect"

const [second, minute, hour] = [1000, 60_000, 3_600_000]

interface Fleet {
  readonly processes?: number
  readonly shared?: boolean
  /** All processes start at once, instead of within a minute. */
  readonly together?: boolean
  /** How long the token endpoint takes. */
  readonly takes?: number
  /** The commands that the store executes in a second, one after the other. By default, any number at once. */
  readonly capacity?: number
  /** When the store refuses connections. */
  readonly down?: readonly [from: number, to: number]
}

/** Simulates a fleet from one moment to another. Returns how many token requests and store commands it sends then. */
const simulate = (
  {
    capacity = Infinity,
    down: [downFrom, downTo] = [0, 0],
    processes = 50,
    shared = true,
    takes = 200,
    together
  }: Fleet,
  from: number,
  to: number
) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make(undefined, settled)
    const now = virtual.monotonic
    const [requests, commands] = [Array<number>(), Array<number>()]
    const endpoint = TokenSource.make(() =>
      Effect.zipLeft(fullToken(`token-${requests.push(now())}`), Effect.sleep(takes))
    )
    const memory = yield* TokenStore.makeMemory
    let busyUntil = 0
    const sending = <A>(
      operation: TokenStore.TokenStoreError["operation"],
      command: Effect.Effect<A, TokenStore.TokenStoreError>
    ) =>
      Effect.suspend(() => {
        if (now() >= downFrom && now() < downTo) {
          return new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
        }
        commands.push(now())
        busyUntil = Math.max(busyUntil, now()) + second / capacity
        return Effect.delay(command, busyUntil - now() + 1)
      })
    const store: TokenStore.Service = {
      ...memory,
      get: (key) => sending("get", memory.get(key)),
      put: (key, entry, life) => sending("put", memory.put(key, entry, life)),
      lease: (key, duration) => sending("lease", memory.lease(key, duration))
    }
    const pause = Effect.flatMap(Random.next, (chance) => Effect.sleep(chance * minute))
    yield* Effect.gen(function*() {
      for (let number = 0; number < processes; number++) {
        const source = shared ? yield* member(endpoint, store) : endpoint
        const { get } = yield* Effect.provideService(
          AccessTokenProvider.make(),
          TokenSource.TokenSource,
          source
        )
        const calls = Effect.forever(Effect.zipRight(get, pause))
        yield* Effect.fork(together === true ? calls : Effect.zipRight(pause, calls))
      }
      yield* virtual.advance(to)
    }).pipe(
      Effect.scoped,
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.make(17)),
      Logger.withMinimumLogLevel(LogLevel.None)
    )
    const counted = (times: ReadonlyArray<number>) =>
      times.filter((at) => at >= from && at < to).length
    return { requests: counted(requests), commands: counted(commands) }
  })

type Bounds = readonly [low: number, high: number]

const exactly = (value: number): Bounds => [value, value]
const about = (value: number): Bounds => [value * 0.92, value * 1.08]

const [size, together] = [50, true]
const [ahead, oneDay] = [5 * minute, 24 * hour]
/** The commands of a start at once, when a process looks this often without finding a token. */
const looking = (looks: number) => about(size * (2 * looks + 1))

describe("docs/reference/sharing.md, how large a fleet", () => {
  it.live.each<
    [what: string, fleet: Fleet, from: number, to: number, requests: Bounds, commands?: Bounds]
  >([
    [
      "a day, shared",
      { processes: 5 },
      0,
      oneDay,
      about(oneDay / (hour - ahead)),
      about(8 * oneDay / (hour - ahead))
    ],
    [
      "a day, not shared",
      { processes: 5, shared: false },
      0,
      oneDay,
      about(5 * oneDay / (hour - 0.9 * ahead + minute / 3))
    ],
    // Drawn from 5 minutes × 0.8 to 1 before the end of the token, and at the next call after that.
    ["a renewal", {}, 55 * minute, 57.5 * minute, exactly(1), about(size + 4)],
    ["a start at once", { together }, 0, 10 * second, exactly(1), looking(4)],
    [
      "a start at once, endpoint of 2 s",
      { together, takes: 2 * second },
      0,
      10 * second,
      exactly(1),
      looking(12)
    ],
    [
      "a start at once, two commands a second per process",
      { together, capacity: 2 * size },
      0,
      minute,
      exactly(1)
    ],
    [
      "a start at once, one command a second per process",
      { together, capacity: size },
      0,
      minute,
      [2, size]
    ],
    [
      "a start at once, store down",
      { together, down: [0, hour] },
      0,
      10 * second,
      exactly(size),
      exactly(0)
    ],
    [
      "store down at a renewal",
      { down: [50 * minute, hour] },
      50 * minute,
      hour,
      exactly(size),
      exactly(0)
    ]
  ])(
    "%s",
    ([, fleet, from, to, requests, commands = [0, Infinity]]) =>
      Effect.gen(function*() {
        const counted = yield* simulate(fleet, from, to)
        const isWithin = (value: number, [low, high]: Bounds) => value >= low && value <= high
        assert.isTrue(
          isWithin(counted.requests, requests),
          `${counted.requests} token requests, ${requests.join(" to ")}`
        )
        assert.isTrue(
          isWithin(counted.commands, commands),
          `${counted.commands} commands, ${commands.join(" to ")}`
        )
      })
  )
})
