/** The fleets of the page. */
import { type Digest, digest, type View } from "./digest.js"
import { outcomeOf, type Setup } from "./fleet.js"

const second = 1000
export const minute = 60 * second
const hour = 60 * minute

export interface Scenario {
  readonly setup: Setup
  readonly view: View
}

/** The defaults of all scenarios. */
export const common = {
  shared: true,
  life: hour,
  answer: 200,
  longestPause: minute,
  start: "spread"
} as const satisfies Partial<Setup>

/** The sizes, each simulated for long enough to give a steady figure. */
export const sizes = [
  { processes: 1, hours: 60 },
  { processes: 10, hours: 40 },
  { processes: 100, hours: 20 },
  { processes: 1000, hours: 3 },
  { processes: 5000, hours: 2 }
] as const

/** The fleets that compare both kinds of endpoint, and their simulated hours. */
export const kindSizes = [
  { processes: 1, hours: 20 },
  { processes: 10, hours: 10 },
  { processes: 100, hours: 3 },
  { processes: 1000, hours: 1 }
] as const

/** Whole lifetimes, starting in the middle of the first token. */
export const kindView = { from: 30 * minute, bin: second } as const

/** The fleet of the plots. */
export const large = 5000
/** The fleet of the tables with many runs. */
export const middling = 1000

/** From shortly before the renewal's token request until the last process has looked. */
export const renewal = { afterRequest: 2, from: -5 * second, to: 130 * second, bin: second } as const satisfies View

const renewalOf = (processes: number, setup: Partial<Setup> = {}): Scenario => ({
  setup: { ...common, processes, lasts: hour, ...setup },
  view: renewal
})

export const coldView = { from: 0, to: 10 * second, bin: 100 } as const satisfies View

const coldOf = (processes: number, setup: Partial<Setup> = {}): Scenario => ({
  setup: { ...common, processes, start: "together", lasts: 10 * second, ...setup },
  view: coldView
})

/** The seeds of fleets that are averaged, because a single one depends on chance. */
const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const

/** It depends on chance how many processes renew during the lease of the crashed one. */
export const deaths = seeds.map((seed) => `renewal, holder crashes, seed ${seed}`)

/** Store commands a second per process. */
export const capacities = [10, 5, 2, 1.5, 1, 0.75, 0.5] as const

/** From five minutes before the renewal of the first token until five minutes after it. */
export const outage = { from: 50 * minute, to: 60 * minute } as const

const outageOf = (processes: number, how: "fails" | "hangs"): Scenario => ({
  setup: { ...common, processes, lasts: 2 * hour, outage: { ...outage, how } },
  view: renewal
})

/** The period that is counted for short-lived tokens. */
export const shortView = { from: minute, to: 15 * minute, bin: second } as const satisfies View

const shortLife = (longestPause: number): Scenario => ({
  setup: { ...common, processes: middling, life: minute, lasts: shortView.to, longestPause },
  view: shortView
})

/** The longest pauses between the calls of a process, for short-lived tokens. */
export const shortPauses = [minute, 4 * second] as const

export const scenarios: Readonly<Record<string, Scenario>> = {
  ...Object.fromEntries(
    sizes.flatMap(({ hours, processes }) =>
      [true, false].map((shared) => [
        `${processes} ${shared ? "shared" : "alone"}`,
        {
          setup: { ...common, shared, processes, lasts: hours * hour },
          view: { from: 0, to: 65 * second, bin: second }
        }
      ])
    )
  ),
  ...Object.fromEntries(
    kindSizes.flatMap(({ hours, processes }) =>
      ([["new", true, false], ["repeated", true, true], ["repeated alone", false, true]] as const).map(
        ([name, shared, repeats]) => {
          const to = kindView.from + hours * hour
          const view = { ...kindView, to }
          return [`${processes} ${name}`, { setup: { ...common, shared, repeats, processes, lasts: to }, view }]
        }
      )
    )
  ),
  ...Object.fromEntries([10, 100, middling].map((processes) => [`renewal ${processes}`, renewalOf(processes)])),
  "renewal": renewalOf(large),
  "renewal, 2 s": renewalOf(large, { answer: 2 * second }),
  "renewal, holder crashes": renewalOf(large, { dies: 2 }),
  ...Object.fromEntries(
    deaths.map((name, index) => [name, renewalOf(middling, { dies: 2, seed: seeds[index] ?? 0 })])
  ),
  "cold": coldOf(large),
  "cold, 2 s": coldOf(large, { answer: 2 * second }),
  "cold, holder crashes": coldOf(large, { dies: 1 }),
  "cold, store down": coldOf(large, { outage: { from: 0, to: hour, how: "fails" } }),
  "revoked": {
    setup: { ...common, processes: large, lasts: 2 * minute + 10 * second, revoked: 2 * minute },
    view: { from: 2 * minute, to: 2 * minute + 10 * second, bin: 100 }
  },
  "slow endpoint": {
    setup: { ...common, processes: middling, start: "together", answer: minute, lasts: 3 * minute },
    view: { from: 0, to: minute, bin: second }
  },
  ...Object.fromEntries(
    capacities.map((each) => [
      `capacity ${each}`,
      { ...coldOf(middling, { capacity: each * middling, lasts: minute }), view: { ...coldView, to: minute } }
    ])
  ),
  "outage": outageOf(large, "fails"),
  "outage, small": outageOf(middling, "fails"),
  "outage, hangs": outageOf(middling, "hangs"),
  ...Object.fromEntries(shortPauses.map((pause) => [`short ${pause}`, shortLife(pause)]))
}

export const run = async ({ setup, view }: Scenario): Promise<Digest> => digest(setup, await outcomeOf(setup), view)
