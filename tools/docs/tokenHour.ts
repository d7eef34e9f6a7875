/** Records two hours of the library on a virtual clock, and draws them as docs/images/token-hour.svg. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { Effect, Exit, Layer, Random, Redacted } from "effect"
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "../../packages/core/src/index.js"
import * as VirtualClock from "../../packages/core/test/support/virtualClock.js"

const minute = 60_000
const callEvery = 20_000
const until = 119 * minute

/** The token endpoint is down for these milliseconds of the recording. */
export const outage = { from: 110.5 * minute, to: 117 * minute }

/** Times are in milliseconds since the start. */
export interface Recording {
  readonly calls: ReadonlyArray<{ readonly at: number; readonly outcome: "served" | "waited" | "failed" }>
  readonly tokenRequests: ReadonlyArray<{ readonly at: number; readonly outcome: "succeeded" | "failed" }>
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
    const token = { access_token: `token-${tokenRequests.length}`, token_type: "bearer", expires_in: 3600 }
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
      calls.push({ at, outcome: Exit.isFailure(exit) ? "failed" : now() - at > 200 ? "waited" : "served" })
    })
    while (now() < until) {
      if (now() % callEvery === 0) yield* Effect.fork(call)
      yield* virtual.advance("1 second")
      const { state } = yield* provider.status
      if (states.at(-1)?.state !== state) states.push({ from: now(), state })
    }
    return { calls, tokenRequests, states }
  }).pipe(Effect.provide(StoreAuthTest), Effect.withClock(virtual.clock), Effect.withRandom(Random.fixed([0.5])))
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
  const x = (at: number) => left + (Math.min(Math.max(at, from), to) - from) / (to - from) * (right - left)
  const shown = <A extends { readonly at: number }>(all: ReadonlyArray<A>) =>
    all.filter(({ at }) => at >= from && at <= to)
  const radius = Math.min(Math.max(x(from + callEvery) - left, 4), 12) * 0.42
  const bands = states.flatMap(({ from: start, state }, index) => {
    const width = x(states[index + 1]?.from ?? until) - x(start)
    if (width < 0.5) return []
    const name = width > state.length * 8 ? text(x(start) + width / 2, top + 69, state, "name") : ""
    return [
      `<rect class="${state}" x="${round(x(start))}" y="${top + 48}" width="${round(width)}" height="32"/>${name}`
    ]
  })
  const [downFrom, downTo] = [x(outage.from), x(outage.to)]
  const down = downTo - downFrom < 1 ? [] : [
    `<rect class="down" x="${round(downFrom)}" y="${top + 84}" width="${round(downTo - downFrom)}" height="40"/>`,
    text((downFrom + downTo) / 2, top + 119, "token endpoint down", "small")
  ]
  const marks = Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, index) => from + index * every)
  return [
    text(16, top, title, "title"),
    text(16, top + 34, "calls", "lane"),
    text(16, top + 69, "token", "lane"),
    text(16, top + 103, "requests", "lane"),
    // A call that is served at once must not cover another.
    ...[...shown(calls)].sort((a, b) => Number(b.outcome === "served") - Number(a.outcome === "served"))
      .map(({ at, outcome }) => mark(outcome, x(at), top + 29, radius)),
    ...bands,
    ...down,
    ...shown(tokenRequests).map(({ at, outcome }) => tick(outcome, x(at), top + 88)),
    ...marks.map((at) => text(x(at), top + (down.length === 0 ? 127 : 143), clock(at / minute), "small"))
  ]
}

const mark = (outcome: string, x: number, y: number, radius: number) =>
  outcome === "failed"
    ? `<path class="failed" d="M${round(x - 5)} ${y - 5}l10 10m0-10l-10 10"/>`
    : `<circle class="${outcome}" cx="${round(x)}" cy="${y}" r="${round(outcome === "waited" ? 5 : radius)}"/>`

const tick = (outcome: string, x: number, y: number) => `<path class="${outcome}" d="M${round(x)} ${y}v16"/>`

const round = (value: number) => Number(value.toFixed(1))

const text = (x: number, y: number, content: string, style: string) =>
  `<text class="${style}" x="${round(x)}" y="${y}">${content}</text>`

const legend = (top: number): ReadonlyArray<string> => [
  ...[
    ["Fresh", "calls get the cached token"],
    ["RefreshSoon", "they still do, and one of them starts a renewal"],
    ["MustWait", "calls wait for a running renewal, then get a token"],
    ["Expired", "calls wait for another token, or fail"]
  ].flatMap(([state = "", meaning = ""], index) => [
    `<rect class="${state}" x="16" y="${top + index * 25 - 13}" width="16" height="16"/>`,
    `<text x="42" y="${top + index * 25}"><tspan class="strong">${state}</tspan>: ${meaning}</text>`
  ]),
  ...["served", "waited", "failed"].flatMap((outcome, index) => [
    mark(outcome, 24 + index * 200, top + 103, 5),
    text(42 + index * 200, top + 108, ["call served at once", "call that waited", "failed call"][index] ?? "", "")
  ]),
  ...["succeeded", "failed"].flatMap((outcome, index) => [
    tick(outcome, 24 + index * 200, top + 120),
    text(42 + index * 200, top + 133, ["token request", "failed token requests, with retries"][index] ?? "", "")
  ])
]

const style = `
  svg { --ground: #ffffff; --ink: #1f2328; --dim: #59636e; --good: #1a7f37; --bad: #cf222e; --wait: #9a6700;
    --fresh: #aceebb; --soon: #fae17d; --must: #ffb77c; --expired: #ffaba8; --down: #ffebe9 }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --ink: #f0f6fc; --dim: #9198a1; --good: #3fb950; --bad: #f85149; --wait: #d29922;
      --fresh: #196c2e; --soon: #845306; --must: #bd561d; --expired: #b62324; --down: #3c1618 }
  }
  text { font: 15px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: var(--ink) }
  .title, .strong { font-weight: 600 }
  .title { font-size: 16px }
  .lane, .small { fill: var(--dim) }
  .name, .small { text-anchor: middle }
  .small { font-size: 14px }
  .Fresh { fill: var(--fresh) } .RefreshSoon { fill: var(--soon) }
  .MustWait { fill: var(--must) } .Expired { fill: var(--expired) } .down { fill: var(--down) }
  circle.served { fill: var(--good) }
  circle.waited { fill: var(--ground); stroke: var(--wait); stroke-width: 2.5 }
  path { stroke-width: 2.5; fill: none }
  path.succeeded { stroke: var(--good) } path.failed { stroke: var(--bad) }`

const clock = (minutes: number) => `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`

export const draw = (recording: Recording): string => {
  const { calls, tokenRequests } = recording
  const hour = [calls, tokenRequests].map((all) => all.filter(({ at }) => at < 70 * minute).length)
  const failed = calls.filter(({ outcome }) => outcome === "failed").length
  const minutes = (outage.to - outage.from) / minute
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 532" width="720" role="img" aria-labelledby="title desc">`,
    `<title id="title">One token's hour: calls above, token requests below</title>`,
    `<desc id="desc">${description}</desc>`,
    `<style>${style}\n</style>`,
    `<rect width="640" height="532" rx="8" style="fill: var(--ground)"/>`,
    ...strip(recording, {
      title: `${hour[0]} calls, ${hour[1]} token requests: only the first call waits`,
      ...{ top: 30, from: 0, to: 70 * minute, every: 10 * minute }
    }),
    ...strip(recording, {
      title: `An outage of ${minutes} minutes at the next renewal: ${failed} calls fail`,
      ...{ top: 196, from: 109 * minute, to: 119 * minute, every: minute }
    }),
    ...legend(378),
    "</svg>"
  ].join("\n") + "\n"
}

const description =
  "The first call requests a token. Calls get it from the cache for 55 minutes. Then one of them starts a renewal in " +
  "the background, and no call waits. An hour later the token endpoint is down. Calls get the cached token until it " +
  "has expired, and then fail. The first call after the outage gets a new token."
