/** The arithmetic of the page, by which the simulation is judged. All times in milliseconds. */
import { longestWay, shortestWay } from "./store.js"

/**
 * The behaviour of a process: the lifetime of its tokens, and its longest pause between calls (uniform distribution).
 */
export interface Habit {
  readonly life: number
  readonly longestPause: number
}

/** The product's defaults; that they are is what the simulation shows. */
export const lease = 5000
export const storeTimeout = 1000
export const pauses = { first: 50, longest: 500, jitter: 0.875 }

/** How long before expiry the first process may renew, and over which time the random draw spreads the renewals. */
export const ahead = (life: number) => Math.min(5 * 60_000, life / 4)
export const jitter = (life: number): number => 0.2 * ahead(life)

const meanWay = (shortestWay + longestWay) / 2

/** The chance that a process that called at random before has called again within this time. */
const called = (time: number, pause: number): number => time <= 0 ? 0 : time >= pause ? 1 : 1 - (1 - time / pause) ** 2

/** The integral of `called`. */
const calledArea = (time: number, pause: number): number =>
  time <= 0 ? 0 : time >= pause ? time - pause / 3 : time - pause / 3 * (1 - (1 - time / pause) ** 3)

/** The share of processes that have had their turn so long after the first moment that any may. */
export const turned = (time: number, { life, longestPause }: Habit): number =>
  (calledArea(time, longestPause) - calledArea(time - jitter(life), longestPause)) / jitter(life)

/** How many of a fleet have their turn in a millisecond. */
export const turns = (processes: number, time: number, { life, longestPause }: Habit): number =>
  processes * (called(time, longestPause) - called(time - jitter(life), longestPause)) / jitter(life)

const integral = (of: (time: number) => number, to: number): number => {
  const steps = 20_000
  const step = to / steps
  let sum = 0
  for (let index = 0; index < steps; index++) sum += of((index + 0.5) * step)
  return sum * step
}

/** When the first of so many has its turn, on average. */
export const firstTurn = (processes: number, habit: Habit): number =>
  integral((time) => (1 - turned(time, habit)) ** processes, jitter(habit.life) + habit.longestPause)

/** Token requests an hour of so many processes that share one token. */
export const sharedPerHour = (processes: number, habit: Habit): number =>
  3_600_000 / (habit.life - ahead(habit.life) + firstTurn(processes, habit))

/** Token requests an hour of so many processes, each with a token of its own. */
export const alonePerHour = (processes: number, habit: Habit): number => processes * sharedPerHour(1, habit)

/** How often a process finds no token while it waits for another's, and when it looks once more. */
export const looks = (wait: number): { readonly count: number; readonly ready: number } => {
  let [count, ready] = [0, 0]
  for (let pause = pauses.first; ready < wait; pause = Math.min(2 * pause, pauses.longest)) {
    count += 1
    ready += 2 * meanWay + pause * pauses.jitter
  }
  return { count, ready: ready + meanWay }
}

/** Looks in a second of one who waits for long. */
export const looksASecond = 1000 / (pauses.longest * pauses.jitter + 2 * meanWay)

/** From the first look until the token is in the store: a look, the lease, a look, the response, a put. */
export const published = (answer: number): number => answer + 4 * meanWay

const extensions = (answer: number): number => Math.floor(answer / Math.ceil(lease / 3))

/** Commands of a cold start of all at once, and those of its first tenth of a second. */
export const cold = (processes: number, answer: number): number =>
  (processes - 1) * (2 * looks(published(answer)).count + 1) + 5 + extensions(answer)

export const coldPeak = (processes: number): number => processes * 2 * looks(100).count

/** How many more find no token yet when one renews that takes so long. */
export const joining = (processes: number, answer: number, habit: Habit): number => {
  const first = firstTurn(processes, habit)
  return integral((time) => turns(processes, first + time, habit), published(answer))
}

/** Commands of a renewal: a look each, five more of the one that renews, and those who wait for it. */
export const renewal = (processes: number, answer: number, habit: Habit): number => {
  const first = firstTurn(processes, habit)
  const until = published(answer)
  const waiting = integral((time) => turns(processes, first + time, habit) * 2 * looks(until - time).count, until)
  return processes + 5 + extensions(answer) + waiting
}

/** Token requests in the worst second when each asks for itself. */
export const alonePeak = (processes: number, { life, longestPause }: Habit): number =>
  turns(processes, Math.min(jitter(life), longestPause), { life, longestPause }) * 1000
