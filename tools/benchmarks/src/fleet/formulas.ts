/** The formulas of the page, which check the simulation. All times are in milliseconds. */
import { longestWay, shortestWay } from "./fleet.js"

/** How far a figure may be from its formula. */
export const tolerance = 0.08

/**
 * The behaviour of a process: the lifetime of its tokens, and its longest pause between calls (uniform distribution).
 */
export interface Habit {
  readonly life: number
  readonly longestPause: number
}

/** The library's defaults. The test compares them with the source. */
export const lease = 5000
export const storeTimeout = 1000
export const pauses = { first: 50, growth: 1.25, longest: 500, jitter: 0.875 }

/** How long before expiry the first process may renew, and over which time the random draw spreads the renewals. */
export const ahead = (life: number) => Math.min(5 * 60_000, life / 4)
export const jitter = (life: number): number => 0.2 * ahead(life)

const meanWay = (shortestWay + longestWay) / 2

/** The chance that a process that called at random before has called again within this time. */
const called = (time: number, pause: number): number => time <= 0 ? 0 : time >= pause ? 1 : 1 - (1 - time / pause) ** 2

/** The integral of `called`. */
const calledArea = (time: number, pause: number): number =>
  time <= 0 ? 0 : time >= pause ? time - pause / 3 : time - pause / 3 * (1 - (1 - time / pause) ** 3)

/** The share of processes that have looked this long after the first possible moment. */
export const turned = (time: number, { life, longestPause }: Habit): number =>
  (calledArea(time, longestPause) - calledArea(time - jitter(life), longestPause)) / jitter(life)

/** How many processes of a fleet look in a millisecond. */
export const turns = (processes: number, time: number, { life, longestPause }: Habit): number =>
  processes * (called(time, longestPause) - called(time - jitter(life), longestPause)) / jitter(life)

const integral = (of: (time: number) => number, to: number): number => {
  const steps = 20_000
  const step = to / steps
  let sum = 0
  for (let index = 0; index < steps; index++) sum += of((index + 0.5) * step)
  return sum * step
}

/** When the first of these processes looks, on average. */
export const firstTurn = (processes: number, habit: Habit): number =>
  integral((time) => (1 - turned(time, habit)) ** processes, jitter(habit.life) + habit.longestPause)

/** Token requests an hour of processes that share one token. */
export const sharedPerHour = (processes: number, habit: Habit): number =>
  3_600_000 / (habit.life - ahead(habit.life) + firstTurn(processes, habit))

/** Token requests an hour of processes that do not share. */
export const alonePerHour = (processes: number, habit: Habit): number => processes * sharedPerHour(1, habit)

/** How often a process finds no token while it waits for another's, and when its next look ends. */
export const looks = (wait: number): { readonly count: number; readonly ready: number } => {
  let [count, ready] = [0, 0]
  for (let pause = pauses.first; ready < wait; pause = Math.min(pauses.growth * pause, pauses.longest)) {
    count += 1
    ready += 2 * meanWay + pause * pauses.jitter
  }
  return { count, ready: ready + meanWay }
}

/** Looks per second of a process that waits long. */
export const looksASecond = 1000 / (pauses.longest * pauses.jitter + 2 * meanWay)

/** The time from the first look until the token is in the store: a look, the lease, a look, the response, a put. */
export const published = (answer: number): number => answer + 4 * meanWay

const extensions = (answer: number): number => Math.floor(answer / Math.ceil(lease / 3))

/** The commands when all processes start at once. */
export const cold = (processes: number, answer: number): number =>
  (processes - 1) * (2 * looks(published(answer)).count + 1) + 5 + extensions(answer)

/** The share of processes whose third look is in the first 100 ms: after two looks and two pauses of random length. */
const thirdLook = (): number => {
  const shortest = 2 * pauses.jitter - 1
  const drawn = (chance: number) => shortest + (1 - shortest) * chance
  const rest = (chance: number) => 100 - 4 * meanWay - pauses.first * drawn(chance)
  const inTime = (chance: number) => (rest(chance) / (pauses.growth * pauses.first) - shortest) / (1 - shortest)
  return integral((chance) => Math.max(0, Math.min(1, inTime(chance))), 1)
}

export const coldPeak = (processes: number): number => processes * 2 * (2 + thirdLook())

/** The commands of a renewal: one look per process, four more of the renewing one, and those of waiting processes. */
export const renewal = (processes: number, answer: number, habit: Habit): number => {
  const first = firstTurn(processes, habit)
  const until = published(answer)
  const waiting = integral((time) => turns(processes, first + time, habit) * 2 * looks(until - time).count, until)
  return processes + 4 + extensions(answer) + waiting
}

/** Token requests in the busiest second without sharing. */
export const alonePeak = (processes: number, { life, longestPause }: Habit): number =>
  turns(processes, Math.min(jitter(life), longestPause), { life, longestPause }) * 1000
