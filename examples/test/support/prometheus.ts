/**
 * Runs Prometheus and promtool, which come from the same package, and parses what a program serves to Prometheus, such
 * as two stores in this process.
 */
import { execFile, spawn, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { inspect, promisify } from "node:util"
import { NodeSdk } from "@effect/opentelemetry"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import {
  AccessToken,
  AccessTokenProvider,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { freePort } from "@store-api/testing/loopback"
import {
  Context,
  DateTime,
  Effect,
  Layer,
  Logger,
  Redacted,
  Schedule,
  Schema,
  type Scope
} from "effect"

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [time: number, value: string]
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: ReadonlyArray<readonly [time: number, value: string]>
}

export interface Prometheus {
  /** Evaluates an expression now. An expression that Prometheus rejects is a defect. */
  readonly query: (expression: string) => Effect.Effect<ReadonlyArray<Sample>>
  /** Evaluates an expression for each minute of a period, in seconds since the epoch. */
  readonly queryRange: (
    expression: string,
    from: number,
    to: number
  ) => Effect.Effect<ReadonlyArray<Series>>
  /** Evaluates an expression until it has a result. */
  readonly queryUntil: (expression: string) => Effect.Effect<ReadonlyArray<Sample>>
  /** The alerts that Prometheus evaluates. */
  readonly alerts: Effect.Effect<
    ReadonlyArray<{ readonly name: string; readonly health: string; readonly state: string }>
  >
}

const metric = Schema.Record({ key: Schema.String, value: Schema.String })
const Value = Schema.Tuple(Schema.Number, Schema.String)

const answerOf = <A, I>(result: Schema.Schema<A, I>) =>
  Schema.parseJson(Schema.Struct({
    status: Schema.Literal("success"),
    data: Schema.Struct({ result: Schema.Array(result) })
  }))

const Answer = answerOf(Schema.Struct({ metric, value: Value }))
const RangeAnswer = answerOf(Schema.Struct({ metric, values: Schema.Array(Value) }))

const Rules = Schema.parseJson(Schema.Struct({
  data: Schema.Struct({
    groups: Schema.Array(Schema.Struct({
      rules: Schema.Array(
        Schema.Struct({ name: Schema.String, health: Schema.String, state: Schema.String })
      )
    }))
  })
}))

/**
 * Starts Prometheus in a folder with these files, one of them `prometheus.yml`. It stops with the scope. With a file
 * `past.om`, it has the samples of this file.
 */
export const start = (
  files: Readonly<Record<string, string>>
): Effect.Effect<Prometheus, never, Scope.Scope> =>
  Effect.gen(function*() {
    const port = yield* freePort
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "prometheus-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    if ("past.om" in files) {
      const into = ["tsdb", "create-blocks-from", "openmetrics", "past.om", "data"]
      yield* Effect.promise(() => promisify(execFile)("promtool", into, { cwd: folder }))
    }
    const { closed } = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const options = [
          "--config.file=prometheus.yml",
          "--storage.tsdb.path=data",
          // The samples of a recording may be old.
          "--storage.tsdb.retention.time=100y",
          `--web.listen-address=127.0.0.1:${port}`
        ]
        const child = spawn("prometheus", [...options, "--log.level=error"], {
          cwd: folder,
          stdio: "inherit"
        })
        return {
          child,
          closed: new Promise((resolve) => child.on("close", resolve).on("error", resolve))
        }
      }),
      ({ child, closed }) =>
        Effect.zipRight(Effect.sync(() => child.kill("SIGKILL")), Effect.promise(() => closed))
    )
    const url = `http://127.0.0.1:${port}`
    yield* Effect.raceFirst(
      eventually(fetched(`${url}/-/ready`), ({ status }) => status === 200),
      Effect.flatMap(Effect.promise(() => closed), (end) =>
        Effect.dieMessage(`prometheus has ended: ${String(end)}`))
    )
    const answered = <A, I>(
      answer: ReturnType<typeof answerOf<A, I>>,
      path: string,
      parameters: Record<string, string>
    ) =>
      Effect.map(
        Effect.flatMap(
          fetched(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`),
          ({ text }) =>
            Schema.decodeUnknown(answer)(text)
        ),
        ({ data }) => data.result
      ).pipe(Effect.orDie)
    const query = (expression: string) => answered(Answer, "query", { query: expression })
    return {
      query,
      queryRange: (query, from, to) =>
        answered(RangeAnswer, "query_range", {
          query,
          start: String(from),
          end: String(to),
          step: "60"
        }),
      queryUntil: (expression) =>
        eventually(query(expression), (samples) => samples.length > 0),
      alerts: Effect.flatMap(fetched(`${url}/api/v1/rules`), ({ text }) =>
        Schema.decodeUnknown(Rules)(text)).pipe(
          Effect.map(({ data }) =>
            data.groups.flatMap(({ rules }) => rules)
          ),
          Effect.orDie
        )
    }
  })

const isMissing = (command: string) => {
  const missing = spawnSync(command, ["--version"]).status !== 0 &&
    process.env["CI"] !== "true"
  if (missing) console.warn(`There is no command ${command}: tests that need it are skipped.`)
  return missing
}

export const isLeftOut: boolean = isMissing("promtool")

/** The server, which some packages of promtool lack. */
export const isServerLeftOut: boolean = isMissing("prometheus")

export interface Verdict {
  readonly passed: boolean
  /** The output of Prometheus. */
  readonly said: string
}

/** Runs promtool in a folder with only these files. Asynchronous, because it takes seconds. */
export const promtool = async (
  files: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Promise<Verdict> => {
  const folder = mkdtempSync(join(tmpdir(), "promtool-"))
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    return await new Promise((resolve, reject) => {
      execFile("promtool", args, { cwd: folder }, (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") reject(new Error(error.message))
        else resolve({ passed: error === null, said: `${stdout}${stderr}` })
      })
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export const fetched = (url: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  })

/** Repeats the check until it holds. After five minutes, the failure shows the last value. */
export const eventually = <A, E>(
  effect: Effect.Effect<A, E>,
  holds: (value: A) => boolean
): Effect.Effect<A> =>
  Effect.filterOrFail(effect, holds, (value) => new Error(`not yet: ${inspect(value)}`)).pipe(
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 6000 }),
    Effect.orDie
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

/** No other test may use these: the series of a worker begin at zero here. */
export const names = ["scraped one", "scraped two"] as const

export interface TwoStores {
  /** The addresses at which their series are scraped. */
  readonly port: number
  /**
   * Changes the series of both stores: tokens are acquired, awaited, refused and found in the shared store, which then
   * fails.
   */
  readonly use: Effect.Effect<void>
}

const newToken = Effect.map(DateTime.now, (acquiredAt) =>
  new AccessToken.AccessToken({
    value: Redacted.make("an-invented-token"),
    acquiredAt,
    expiresAt: DateTime.add(acquiredAt, { hours: 1 })
  }))

const purpose = Effect.succeed({
  name: ["https://auth.store.example"],
  secret: Redacted.make("an-invented-secret"),
  maxLifetime: "1 hour" as const
})

/** Adds labels as in docs/guides/telemetry.md. */
const provider = (name: string, store: TokenStore.Service) =>
  Effect.gen(function*() {
    const layer = AccessTokenProvider.layer().pipe(
      // A busy machine must not look like a store that fails.
      Layer.provide(
        SharedTokenSource.layer({ storeTimeout: "30 seconds" })
      ),
      Layer.provide([
        TokenSource.layer(() => newToken, purpose),
        Layer.succeed(TokenStore.TokenStore, store)
      ])
    )
    const context = yield* Effect.tagMetrics(Layer.build(layer), "store", name)
    return Context.get(context, AccessTokenProvider.AccessTokenProvider)
  }).pipe(Effect.orDie)

export const twoStores: Effect.Effect<TwoStores, never, Scope.Scope> = Effect.gen(function*() {
  const port = yield* freePort
  yield* Layer.build(NodeSdk.layer(() => ({
    resource: { serviceName: "shop" },
    metricReader: new PrometheusExporter({ host: "127.0.0.1", port, withoutScopeInfo: true })
  })))
  const uses = yield* Effect.forEach(names, (name) =>
    Effect.gen(function*() {
      const store = yield* TokenStore.makeMemory
      const down = new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })
      const buyer = yield* provider(name, store)
      const finder = yield* provider(name, store)
      const alone = yield* provider(name, { ...store, get: () => Effect.fail(down) })
      return Effect.gen(function*() {
        const [token] = yield* Effect.all([buyer.get, buyer.get], { concurrency: 2 })
        yield* finder.get
        yield* alone.get
        yield* buyer.invalidate(token)
      })
    }))
  return {
    port,
    use: Effect.all(uses, { discard: true }).pipe(
      Effect.orDie,
      Effect.provide(Logger.remove(Logger.defaultLogger))
    )
  }
})
