/** Tests the example, the configuration and the dashboard with a running Prometheus, and the alerts with promtool. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { freePort } from "@store-api/testing/loopback"
import { Context, Effect, Exit, Layer, Logger, LogLevel, ManagedRuntime } from "effect"
import { asked, named, read, shownIn, targets, variables } from "./support/dashboard.js"
import { draw, evaluate, record } from "./support/dashboardPicture.js"
import { bundled, type Program, secretsIn, start, variablesOf } from "./support/program.js"
import * as Prometheus from "./support/prometheus.js"

/**
 * The program `prometheus` with its emulator, and two stores in this process, which make some calls. Each serves its
 * series on its own port.
 */
class Scraped extends Context.Tag("Scraped")<Scraped, {
  readonly emulator: Emulator.Service
  readonly program: Program
  readonly port: number
  readonly stores: Prometheus.TwoStores
}>() {
  static readonly Live = Layer.scoped(
    this,
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const port = yield* freePort
      const program = yield* start(yield* bundled, "prometheus", {
        ...variablesOf(emulator),
        METRICS_PORT: String(port)
      })
      const stores = yield* Prometheus.twoStores
      return {
        emulator,
        program,
        port,
        stores: { ...stores, use: yield* Effect.cached(stores.use) }
      }
    })
  )
}

const metrics = (port: number, holds: (text: string) => boolean) =>
  Effect.map(
    Prometheus.eventually(Prometheus.fetched(`http://127.0.0.1:${port}/metrics`), ({ text }) =>
      holds(text)),
    ({ text }) =>
      text
  )

/** Prometheus adds these to every scrape. */
const ofPrometheus = ["job", "instance"]

/** The series that an expression names and the program does not serve. */
const missing = (
  served: ReadonlyMap<string, ReadonlySet<string>>,
  expression: string,
  legend = ""
): ReadonlyArray<string> => {
  const selectors = [...expression.matchAll(/(store_api_token_\w+)(?:\{([^}]*)\})?/g)]
  const grouped = [...expression.matchAll(/ by \(([^)]*)\)/g)].flatMap(([, labels = ""]) =>
    labels.split(/,\s*/)
  )
  return selectors.flatMap(([, name = "", matchers = ""]) => {
    const labels = served.get(name)
    if (labels === undefined) return [name]
    const asked = [...matchers.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label)
    return [...new Set([...asked, ...shownIn(legend), ...grouped])]
      .filter((label) => !labels.has(label) && !ofPrometheus.includes(label))
      .map((label) => `${name}: ${label}`)
  })
}

const root = join(import.meta.dirname, "..", "..")
const timeout = 60_000

// `layer` of `@effect/vitest` would replace the methods of `it` for every file that the same worker runs later.
const runtime = ManagedRuntime.make(Scraped.Live)
const withScraped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, runtime)

describe("examples/prometheus", () => {
  afterAll(() => runtime.dispose(), timeout)

  it.live(
    "the example serves all series of the alerts and the documentation, and no secret",
    () =>
      withScraped(Effect.gen(function*() {
        const { emulator, port, program } = yield* Scraped
        const scraped = yield* metrics(
          port,
          (text) => text.includes("store_api_token_acquisitions_total{outcome=\"Success\"} 1")
        )
        const lines = scraped.split("\n")
        // All series of the alerts and the documentation exist, except those of a shared store.
        for (const file of ["examples/prometheus/alerts.yml", "docs/guides/telemetry.md"]) {
          const named = readFileSync(join(root, file), "utf8").match(/store_api_token_\w+/g) ??
            []
          const missing = [...new Set(named)].filter((name) =>
            !new RegExp(`^${name}(_total|_count)?[{ ]`, "m").test(scraped)
          )
          assert.isAbove(named.length, 5)
          deepStrictEqual(
            missing.filter((name) => !name.startsWith("store_api_token_store_")),
            [],
            file
          )
        }
        const value = (series: string) =>
          Number(lines.find((line) => line.startsWith(`${series} `))?.split(" ").at(-1))
        assert.include(lines, "# TYPE store_api_token_acquisitions_total counter")
        assert.include(lines, "# TYPE store_api_token_expiry_timestamp_seconds gauge")
        assert.include(lines, "# TYPE store_api_token_acquisition_duration_seconds histogram")
        assert.strictEqual(
          value("store_api_token_acquisitions_total{outcome=\"TokenRefusedError\"}"),
          0
        )
        assert.strictEqual(value("store_api_token_callers_joined_total"), 0)
        const [token] = yield* emulator.tokens
        const expiry = value("store_api_token_expiry_timestamp_seconds{unit=\"s\"}")
        assert.approximately(expiry, (token?.expiresAt.epochMillis ?? 0) / 1000, 60)
        assert.strictEqual(
          value("store_api_token_acquisition_duration_seconds_bucket{unit=\"s\",le=\"+Inf\"}"),
          value("store_api_token_acquisition_duration_seconds_count{unit=\"s\"}")
        )
        yield* emulator.revoke()
        yield* metrics(port, (text) =>
          text.includes("store_api_token_rejections_total{outcome=\"Dropped\"} 1"))
        deepStrictEqual(yield* secretsIn(emulator, scraped, yield* program.output), [])
        assert.notInclude(scraped, Emulator.demoClient.clientId)
      })),
    timeout
  )

  it.scopedLive.skipIf(Prometheus.isServerLeftOut)(
    "Prometheus evaluates all alerts and dashboard queries",
    () =>
      withScraped(Effect.gen(function*() {
        const { emulator, port, stores } = yield* Scraped
        const configuration = read("prometheus.yml")
          .replace("\"127.0.0.1:9464\"", `"127.0.0.1:${port}", "127.0.0.1:${stores.port}"`)
          .replace("15s", "1s")
        const prometheus = yield* Prometheus.start({
          "prometheus.yml": `global: { evaluation_interval: 100ms }\n${configuration}`,
          "alerts.yml": read("alerts.yml")
        })
        const acquired = "store_api_token_acquisitions_total{outcome=\"Success\"}"
        yield* prometheus.queryUntil(`${acquired} >= 1`)
        yield* prometheus.queryUntil(
          `count(${
            acquired.replace("}", ", store=~\"scraped .*\"}")
          } == 0) == ${Prometheus.names.length}`
        )
        yield* emulator.revoke()
        yield* stores.use
        yield* prometheus.queryUntil(
          `count(increase(${acquired}[1m]) > 0) == ${Prometheus.names.length + 1}`
        )
        /** Waits until the series of all these stores are there, because a late scrape leaves a gap. */
        const answers = (expression: string, stores: ReadonlyArray<string | undefined>) =>
          Prometheus.eventually(
            prometheus.query(expression),
            // This process may also serve series of tests that ran before.
            (samples) =>
              stores.every((store) => samples.some(({ metric }) => metric["store"] === store))
          ).pipe(Effect.timeoutFail({
            duration: "30 seconds",
            onTimeout: () => new Error(`not of ${stores.join(", ")}: ${expression}`)
          }))
        for (const { expr, legendFormat } of targets) {
          // The example, whose store has no label and is not shared, and the two stores that share their tokens.
          const samples = yield* answers(
            asked(expr),
            /_store_/.test(expr) ? Prometheus.names : [undefined, ...Prometheus.names]
          )
          const legends = samples.map(({ metric }) => named(legendFormat, metric))
          assert.lengthOf(
            new Set(legends),
            samples.length,
            `${expr}: two lines of one name among ${legends.join(", ")}`
          )
          for (const { metric } of samples) {
            const absent = shownIn(legendFormat).filter((label) => !(label in metric))
            deepStrictEqual(absent, "store" in metric ? [] : ["store"], expr)
          }
          const [of] = Prometheus.names
          yield* answers(asked(expr, of), [of])
        }
        const alerts = yield* Prometheus.eventually(
          prometheus.alerts,
          (alerts) =>
            alerts.every(({ health }) => health !== "unknown") &&
            alerts.some(({ state }) => state === "firing")
        )
        assert.isAtLeast(alerts.length, 7)
        deepStrictEqual(alerts.filter(({ health }) => health !== "ok"), [])
        // Only the alerts of the two stores whose shared stores are down.
        const firing = alerts.filter(({ state }) => state === "firing")
        deepStrictEqual(firing.map(({ name }) => name), ["StoreTokenStoreDown"])
        const broken = yield* Effect.exit(prometheus.query("sum by (outcome (up)"))
        assert.isTrue(Exit.isFailure(broken), "what it does not take is noticed")
        deepStrictEqual(
          yield* prometheus.query("store_api_token_rejections{outcome=\"Kept\"}"),
          [],
          "as is what is not there"
        )
      })),
    timeout
  )

  it.live(
    "the dashboard uses series and labels that are served, and no other",
    () =>
      withScraped(Effect.gen(function*() {
        const { port, stores } = yield* Scraped
        yield* stores.use
        const served = Prometheus.labelsOf([
          yield* metrics(port, (text) =>
            text.includes("store_api_token_acquisitions_total{outcome=\"Success\"}")),
          yield* metrics(
            stores.port,
            (text) =>
              Prometheus.names.every((name) =>
                new RegExp(`^store_api_token_store_hits_total.*"${name}"`, "m").test(text)
              )
          )
        ].join("\n"))
        assert.isAbove(targets.length, 8)
        assert.lengthOf(variables, 3)
        deepStrictEqual(
          variables.flatMap((expression) =>
            missing(served, expression)
          ),
          []
        )
        deepStrictEqual(
          targets.flatMap(({ expr, legendFormat }) => missing(served, expr, legendFormat)),
          []
        )
        deepStrictEqual(
          [
            missing(served, "store_api_token_rejections{outcome=\"Kept\"}"),
            missing(served, "store_api_token_rejections_total{cause=~\"Kept\"}"),
            missing(served, "sum by (operation) (store_api_token_rejections_total)"),
            missing(served, "store_api_token_store_failures_total", "{{operation}} {{reason}}")
          ],
          [
            ["store_api_token_rejections"],
            ["store_api_token_rejections_total: cause"],
            ["store_api_token_rejections_total: operation"],
            ["store_api_token_store_failures_total: reason"]
          ]
        )
      })),
    timeout
  )
})

const picture = "docs/images/dashboard.svg"

it.skipIf(Prometheus.isServerLeftOut)(
  `${picture} shows what \`npm run picture\` draws`,
  async () => {
    const drawn = Effect.gen(function*() {
      const prometheus = yield* Prometheus.start({
        "prometheus.yml": "",
        "past.om": yield* record
      })
      return draw(readFileSync(join(root, picture), "utf8"), yield* evaluate(prometheus))
    })
    const quiet = Logger.withMinimumLogLevel(Effect.scoped(drawn), LogLevel.None)
    await expect(await Effect.runPromise(quiet)).toMatchFileSnapshot(join(root, picture))
  },
  timeout
)

const files = {
  "alerts.yml": read("alerts.yml"),
  "alerts.test.yml": read("alerts.test.yml"),
  "prometheus.yml": read("prometheus.yml")
}

const alertNames = [...files["alerts.yml"].matchAll(/- alert: (\w+)/g)].map(([, name = ""]) =>
  name
)

const expectPass = ({ passed, said }: Prometheus.Verdict) => {
  assert.isTrue(passed, said)
}

/** The files, with a pattern in these alerts replaced. */
const changed = (
  alertNames: ReadonlyArray<string>,
  pattern: RegExp,
  by: string
): typeof files => {
  const parts = files["alerts.yml"].split(/(?=- alert: )/).map((part) => {
    if (!alertNames.some((name) => part.startsWith(`- alert: ${name}\n`))) return part
    assert.match(part, pattern)
    return part.replace(pattern, by)
  })
  return { ...files, "alerts.yml": parts.join("") }
}

const tried = (rules: typeof files) =>
  Prometheus.promtool(rules, "test", "rules", "alerts.test.yml")

/** The files, with only the tests of this alert. */
const only = (name: string, rules: typeof files): typeof files => {
  const [head = "", ...tests] = files["alerts.test.yml"].split(/(?=^ {2}- name: )/m)
  return {
    ...rules,
    "alerts.test.yml": [head, ...tests.filter((test) => test.includes(name))].join("")
  }
}

/** The alerts that promtool reported as failed. */
const noticed = ({ passed, said }: Prometheus.Verdict) => {
  assert.isFalse(passed)
  return alertNames.filter((name) => said.includes(`alertname: ${name}, `))
}

describe.skipIf(Prometheus.isLeftOut)(
  "examples/prometheus, by promtool",
  () => {
    it("can be loaded: the rules, and the configuration that names them", async () => {
      expectPass(await Prometheus.promtool(files, "check", "rules", "alerts.yml"))
      expectPass(await Prometheus.promtool(files, "check", "config", "prometheus.yml"))
      const broken = changed(["StoreTokenGone"], /time\(\)/, "time(")
      const withoutRules = { "prometheus.yml": files["prometheus.yml"] }
      assert.isFalse(
        (await Prometheus.promtool(broken, "check", "rules", "alerts.yml")).passed
      )
      assert.isFalse(
        (await Prometheus.promtool(broken, "check", "config", "prometheus.yml")).passed
      )
      assert.isFalse(
        (await Prometheus.promtool(withoutRules, "check", "config", "prometheus.yml")).passed
      )
    })

    it("alerts fire and stop as in alerts.test.yml", async () => {
      expectPass(await tried(files))
    })

    it("an alert that never fires is detected", async () => {
      const never = changed(
        alertNames,
        /expr: (?:>-\n(?: {10}.*\n)+|.*\n)/,
        "expr: vector(0) > 1\n"
      )
      deepStrictEqual(noticed(await tried(never)), alertNames)
    })

    it("an alert without its waiting period is detected", async () => {
      const waiting = alertNames.filter((name) =>
        new RegExp(`- alert: ${name}\n(?: {8}.*\n)*? {8}for: `).test(files["alerts.yml"])
      )
      assert.isAbove(waiting.length, 5)
      deepStrictEqual(
        noticed(await tried(changed(waiting, /for: .*\n/, "for: 0s\n"))),
        waiting
      )
    })

    it.each([
      { rule: "failures are outweighed by a success", pattern: /unless\n.*\n/, by: "" },
      {
        rule: "only a refusal counts for an hour",
        pattern: /outcome="TokenRefusedError"/,
        by: "outcome!=\"Success\""
      },
      { rule: "a refusal counts for an hour", pattern: /\[1h:1m\]/, by: "[6m:1m]" },
      { rule: "a success after the refusal ends it", pattern: / >\n/, by: " >= bool\n" }
    ])("StoreTokenGone without it is noticed: $rule", async ({ by, pattern }) => {
      const rules = only("StoreTokenGone", changed(["StoreTokenGone"], pattern, by))
      deepStrictEqual(noticed(await tried(rules)), ["StoreTokenGone"])
    })

    it("each alert has situations in which it fires, and in which it does not", () => {
      assert.isAtLeast(alertNames.length, 7)
      const situations = [
        ...files["alerts.test.yml"].matchAll(
          /alertname: (\w+),?\s+eval_time: \w+,?\s+exp_alerts:(?: (\[\]))?/g
        )
      ]
      for (const name of alertNames) {
        const fires = situations.filter(([, alert]) => alert === name).map(([, , none]) =>
          none === undefined
        )
        assert.sameMembers([...new Set(fires)], [true, false], name)
      }
    })
  }
)
