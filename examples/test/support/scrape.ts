/** Parses the metrics that a program serves to Prometheus. */
import { Effect, Schedule } from "effect"

export const fetched = (url: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  })

/** Repeats the check until it holds, or the test times out. */
export const eventually = <A, E>(effect: Effect.Effect<A, E>, holds: (value: A) => boolean): Effect.Effect<A> =>
  Effect.retry(Effect.filterOrFail(effect, holds), Schedule.spaced("50 millis")).pipe(Effect.orDie)

/** The names of the series and of their labels. */
export const labelsOf = (text: string): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const [, name = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set()
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label)
    found.set(name, known)
  }
  return found
}
