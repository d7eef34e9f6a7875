/**
 * The measurements of a cached token in alternating rounds, plain and in a traced application: in one fiber, as a
 * promise, and as a header. Each runs in its own process.
 */
import { NodeSdk } from "@effect/opentelemetry"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, InMemorySpanExporter } from "@opentelemetry/sdk-trace-base"
import { AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Effect, ManagedRuntime, Runtime } from "effect"
import { aheadOf, withTokenServer } from "./comparison.js"
import { alternate, type Candidate, paired, plainly, type Run, type Timed, timed, token, yielding } from "./harness.js"
import { measureHit } from "./hit.js"

export const ours = "Effect.runPromise(provider.get)"
const baseline = "Effect.runPromise(Effect.succeed(x))"

/** Calls a function that returns a promise, one call after the other. */
const awaiting = (name: string, call: () => Promise<unknown>): Candidate => ({
  name,
  run: async (times) => {
    const start = performance.now()
    for (let i = 0; i < times; i++) await call()
    return performance.now() - start
  }
})

/** Uses the runtime of the calling fiber, so that each promise is within its span, as in a request handler. */
const awaitingWithin = (run: Run) => (name: string, effect: Effect.Effect<unknown, unknown>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.gen(function*() {
      const call = Runtime.runPromise(yield* Effect.runtime())
      return yield* Effect.promise(() => awaiting(name, () => call(effect)).run(times))
    }))
})

const withProvider = <A, E>(effect: Effect.Effect<A, E, AccessTokenProvider.AccessTokenProvider>) =>
  effect.pipe(
    Effect.provideServiceEffect(AccessTokenProvider.AccessTokenProvider, AccessTokenProvider.make()),
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(3_600_000))),
    Effect.scoped
  )

const measureCalls = (
  millis: number,
  run: Run = plainly,
  others: ReadonlyArray<Candidate> = []
): Promise<ReadonlyArray<Timed>> =>
  run(withProvider(Effect.gen(function*() {
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const succeed = Effect.succeed(yield* provider.get)
    const awaited = run === plainly
      ? (name: string, effect: typeof provider.get) => awaiting(name, () => Effect.runPromise(effect))
      : awaitingWithin(run)
    const candidates = [awaited(baseline, succeed), awaited(ours, provider.get), ...others]
    return timed(yield* Effect.promise(() => alternate(candidates, millis)), baseline)
  })))

/** The same beside the other libraries, each in its own form. */
export const allCalls = (millis: number): Promise<ReadonlyArray<Timed>> =>
  withTokenServer({ life: 3600, delay: 0 }, async (server) => {
    // Imported here because they load slowly, and not every process needs them.
    const { peers } = await import("./peers.js")
    const clients = []
    for (const { keepsNoToken, make, name } of peers.slice(1)) {
      if (keepsNoToken) continue
      const client = await make({ server, ahead: aheadOf(server.life) })
      await client.get()
      clients.push({ name, ...client })
    }
    const asked = server.arrivals.length
    const measured = await measureCalls(millis, plainly, clients.map(({ get, name }) => awaiting(name, get)))
    if (server.arrivals.length !== asked) throw new Error("A cached call sent a token request.")
    for (const { close } of clients) await close?.()
    return measured
  })

const apiUrl = "https://api.store.example"
const request = HttpClientRequest.get(`${apiUrl}/v1/orders?page=2`)
const response = HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))

// Without the span that `HttpClient.make` adds to each request, which costs more than the header.
const bare = HttpClient.makeWith<never, never, never, never>(Effect.map(() => response), Effect.succeed)

/** The microseconds that `Authorization` adds to a request, with a client that responds immediately. */
const measureAttach = (millis: number, run: Run = plainly, stub: HttpClient.HttpClient = bare) =>
  run(withProvider(Effect.gen(function*() {
    const authorized = yield* AuthorizedHttpClient.withAccessToken(stub, { apiUrl })
    // A new effect each time, as an application creates it for each request.
    const executing = (name: string, client: HttpClient.HttpClient.With<unknown>) =>
      yielding(run)(name, Effect.suspend(() => client.execute(request)))
    const rounds = yield* Effect.promise(() =>
      alternate([executing("bare", stub), executing("authorized", authorized)], millis)
    )
    return paired(rounds, ["authorized", "bare"], (a, b) => (a - b) / 1000)
  })))

/** Runs a measurement whose effects are within spans of an application that exports its spans and metrics. */
const traced = async <A>(measure: (run: Run) => Promise<A>): Promise<A> => {
  const exported = new Set<string>()
  const spans = new (class extends InMemorySpanExporter {
    override export(...[spans, done]: Parameters<InMemorySpanExporter["export"]>) {
      for (const { name } of spans) exported.add(name)
      super.export(spans, done)
      this.reset()
    }
  })()
  const spanProcessor = new BatchSpanProcessor(spans)
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const often = { exportIntervalMillis: 100, exportTimeoutMillis: 100 }
  const metricReader = new PeriodicExportingMetricReader({ exporter, ...often })
  const runtime = ManagedRuntime.make(
    NodeSdk.layer(() => ({ resource: { serviceName: "an application" }, spanProcessor, metricReader }))
  )
  const measured = await measure(async (effect) => {
    const result = await runtime.runPromise(Effect.withSpan(effect, "the application"))
    // The exporters use timers.
    await new Promise((resolve) => setImmediate(resolve))
    return result
  })
  await runtime.dispose()
  if (!exported.has("AccessTokenProvider.acquire")) throw new Error("The measurement was not traced.")
  return measured
}

export const hit = (millis: number) => measureHit(millis)
export const calls = (millis: number) => measureCalls(millis)
export const attach = (millis: number) => measureAttach(millis)
export const tracedHit = (millis: number) => traced((run) => measureHit(millis, run))
export const tracedCalls = (millis: number) => traced((run) => measureCalls(millis, run))
export const tracedAttach = (millis: number) => traced((run) => measureAttach(millis, run))
// The span of each request costs several times the added work, so the measurement takes longer.
export const tracedRequest = (millis: number) =>
  traced((run) => measureAttach(millis * 2.5, run, HttpClient.make(() => Effect.succeed(response))))
