/** What a program serves to Prometheus, taken apart. */
import { Effect, Schedule } from "effect"

export const fetched = (url: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  })

/** Asks until it answers so. */
export const fetchedUntil = (
  url: string,
  holds: (answer: { readonly status: number; readonly text: string }) => boolean
) =>
  Effect.retry(
    Effect.filterOrFail(fetched(url), holds, ({ text }) => text),
    Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(900))
  )

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
