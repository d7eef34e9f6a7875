/** Records two hours of the library on a virtual clock, and draws them as docs/images/token-hour.svg. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Effect, Exit, Layer, Random, Redacted } from "effect"

const minute = 60_000
const callEvery = 20_000
const until = 119 * minute

/** The token endpoint is down for these milliseconds of the recording. */
const outage = { from: 110.5 * minute, to: 117 * minute }

/** Times are in milliseconds since the start. */
export interface Recording {
  readonly calls: ReadonlyArray<
    { readonly at: number; readonly outcome: "served" | "waited" | "failed" }
  >
  readonly tokenRequests: ReadonlyArray<
    { readonly at: number; readonly outcome: "succeeded" | "failed" }
  >
  /** The states of the provider in order. One lasts until the next. */
  readonly states: ReadonlyArray<{ readonly from: number; readonly state: string }>
}

export const record: Effect.Effect<Recording, Error> = Effect.gen(function*() {
  const virtual = VirtualClock.make(0)
  const now = virtual.monotonic
  const calls: Array<Recording["calls"][number]> = []
  const tokenRequests: Array<Recording["tokenRequests"][number]> = []
  const states: Array<Recording["states"][number]> = []

  /** The token endpoint and the API. */
  const http = HttpClient.make((request) => {
    const respond = (status: number, body: object = {}) =>
      Effect.delay(
        Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(body, { status }))),
        "200 millis"
      )
    if (request.url.endsWith("/orders")) return respond(200)
    const isDown = now() >= outage.from && now() < outage.to
    tokenRequests.push({ at: now(), outcome: isDown ? "failed" : "succeeded" })
    const token = {
      access_token: `token-${tokenRequests.length}`,
      token_type: "bearer",
      expires_in: 3600
    }
    return isDown ? respond(503) : respond(200, token)
  })

  const StoreAuthTest = StoreAuth.layer({
    authUrl: "https://auth.store.example",
    apiUrl: "https://api.store.example",
    clientId: "a-client",
    clientSecret: Redacted.make("an-invented-secret")
  }).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, http)))

  return yield* Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const call = Effect.gen(function*() {
      const at = now()
      const exit = yield* Effect.exit(client.get("/orders"))
      // The API alone takes 200 ms.
      calls.push({
        at,
        outcome: Exit.isFailure(exit) ? "failed" : now() - at > 200 ? "waited" : "served"
      })
    })
    while (now() < until) {
      if (now() % callEvery === 0) yield* Effect.fork(call)
      yield* virtual.advance("1 second")
      const { state } = yield* provider.status
      if (states.at(-1)?.state !== state) states.push({ from: now(), state })
    }
    return { calls, tokenRequests, states }
  }).pipe(
    Effect.provide(StoreAuthTest),
    Effect.withClock(virtual.clock),
    Effect.withRandom(Random.fixed([0.5]))
  )
})

const left = 92
const right = 610

/** One strip of time: calls above, the token in the middle, token requests below. */
const strip = (
  { calls, states, tokenRequests }: Recording,
  { every, from, title, to, top }: {
    readonly title: string
    readonly top: number
    readonly from: number
    readonly to: number
    /** The distance between two marks of the axis. */
    readonly every: number
  }
): ReadonlyArray<string> => {
  const x = (at: number) =>
    left + (Math.min(Math.max(at, from), to) - from) / (to - from) * (right - left)
  const shown = <A extends { readonly at: number }>(all: ReadonlyArray<A>) =>
    all.filter(({ at }) => at >= from && at <= to)
  const radius = Math.min(Math.max(x(from + callEvery) - left, 4), 12) * 0.42
  const bands = states.flatMap(({ from: start, state }, index) => {
    const width = x(states[index + 1]?.from ?? until) - x(start)
    if (width < 0.5) return []
    const name = width > state.length * 8
      ? text(x(start) + width / 2, top + 69, state, "name")
      : ""
    return [
      `<rect class="${state}" x="${round(x(start))}" y="${top + 48}" width="${
        round(width)
      }" height="32"/>${name}`
    ]
  })
  const [downFrom, downTo] = [x(outage.from), x(outage.to)]
  const down = downTo - downFrom < 1 ? [] : [
    `<rect class="down" x="${round(downFrom)}" y="${top + 84}" width="${
      round(downTo - downFrom)
    }" height="40"/>`,
    text((downFrom + downTo) / 2, top + 119, "token endpoint down", "small")
  ]
  const marks = Array.from(
    { length: Math.floor((to - from) / every) + 1 },
    (_, index) => from + index * every
  )
  return [
    text(16, top, title, "title"),
    text(16, top + 34, "calls", "lane"),
    text(16, top + 69, "token", "lane"),
    text(16, top + 103, "requests", "lane"),
    // A call that is served at once must not cover another.
    ...[...shown(calls)].sort((a, b) =>
      Number(b.outcome === "served") - Number(a.outcome === "served")
    )
      .map(({ at, outcome }) => mark(outcome, x(at), top + 29, radius)),
    ...bands,
    ...down,
    ...shown(tokenRequests).map(({ at, outcome }) => tick(outcome, x(at), top + 88)),
    ...marks.map((at) =>
      text(x(at), top + (down.length === 0 ? 127 : 143), clock(at / minute), "small")
    )
  ]
}

const mark = (outcome: string, x: number, y: number, radius: number) =>
  outcome === "failed"
    ? `<path class="failed" d="M${round(x - 5)} ${y - 5}l10 10m0-10l-10 10"/>`
    : `<circle class="${outcome}" cx="${round(x)}" cy="${y}" r="${
      round(outcome === "waited" ? 5 : radius)
    }"/>`

const tick = (outcome: string, x: number, y: number) =>
  `<path class="${outcome}" d="M${round(x)} ${y}v16"/>`

const round = (value: number) => Number(value.toFixed(1))

const text = (x: number, y: number, content: string, style: string) =>
  `<text class="${style}" x="${round(x)}" y="${y}">${content}</text>`

const clock = (minutes: number) =>
  `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`

/** The picture with this recording. The rest of the picture, such as its legend, stays as it is. */
export const draw = (picture: string, recording: Recording): string => {
  const { calls, tokenRequests } = recording
  const hour = [calls, tokenRequests].map((all) =>
    all.filter(({ at }) => at < 70 * minute).length
  )
  const failed = calls.filter(({ outcome }) => outcome === "failed").length
  const minutes = (outage.to - outage.from) / minute
  const drawn = [
    ...strip(recording, {
      title: `${hour[0]} calls, ${hour[1]} token requests: only the first call waits`,
      top: 30,
      from: 0,
      to: 70 * minute,
      every: 10 * minute
    }),
    ...strip(recording, {
      title: `An outage of ${minutes} minutes at the next renewal: ${failed} calls fail`,
      top: 196,
      from: 109 * minute,
      to: 119 * minute,
      every: minute
    })
  ]
  return picture.replace(/(?<=<g id="recording">\n)[^]*(?=<\/g>)/, `${drawn.join("\n")}\n`)
}
