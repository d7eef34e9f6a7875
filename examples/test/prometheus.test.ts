/** The example, the configuration, the alerts and the dashboard together: in a Prometheus that runs. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Exit } from "effect"
import { read, shownIn, targets } from "./support/dashboard.js"
import { freePort, start, variablesOf } from "./support/program.js"
import * as Prometheus from "./support/prometheus.js"
import { isLeftOut } from "./support/promtool.js"
import { eventually } from "./support/scrape.js"

/** As a browser asks when all jobs and instances are chosen. */
const asked = (expression: string) => expression.replaceAll(/\$(job|instance)\b/g, ".*")

describe.skipIf(isLeftOut)("a Prometheus that scrapes the example", { timeout: 60_000 }, () => {
  it.scopedLive("evaluates each alert, and has an answer to each question of the dashboard", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const port = yield* freePort
      yield* start("prometheus", { ...variablesOf(emulator), METRICS_PORT: String(port) })
      const configuration = read("prometheus.yml").replace(":9464", `:${port}`).replace("15s", "100ms")
      const prometheus = yield* Prometheus.start({
        "prometheus.yml": `global: { evaluation_interval: 100ms }\n${configuration}`,
        "alerts.yml": read("alerts.yml")
      })
      yield* prometheus.queryUntil("store_api_token_acquisitions_total{outcome=\"Success\"} == 1")
      yield* emulator.revoke()
      yield* prometheus.queryUntil("increase(store_api_token_acquisitions_total{outcome=\"Success\"}[1m]) > 0")
      for (const { expr, legendFormat } of targets) {
        const samples = yield* prometheus.query(asked(expr))
        // Without a shared store those two have no series.
        if (/_store_/.test(expr)) continue
        assert.isNotEmpty(samples, expr)
        for (const { metric } of samples) {
          deepStrictEqual(shownIn(legendFormat).filter((label) => !(label in metric)), [], expr)
        }
      }
      const alerts = yield* eventually(
        prometheus.alerts,
        (alerts) => alerts.every(({ health }) => health !== "unknown")
      )
      assert.isAtLeast(alerts.length, 7)
      deepStrictEqual(alerts.filter(({ health, state }) => health !== "ok" || state === "firing"), [])
      const broken = yield* Effect.exit(prometheus.query("sum by (outcome (up)"))
      assert.isTrue(Exit.isFailure(broken), "what it does not take is noticed")
      deepStrictEqual(
        yield* prometheus.query("store_api_token_rejections{outcome=\"Kept\"}"),
        [],
        "as is what is not there"
      )
    }))
})
