/** The example, the configuration, the alerts and the dashboard together: in a Prometheus that runs. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Equal, Exit, HashSet } from "effect"
import { named, read, shownIn, targets } from "./support/dashboard.js"
import { freePort, start, variablesOf } from "./support/program.js"
import * as Prometheus from "./support/prometheus.js"
import { isServerLeftOut } from "./support/promtool.js"
import { eventually } from "./support/scrape.js"
import { names, twoStores } from "./support/stores.js"

/** As a browser asks when all jobs and instances are chosen; one store, or all and what has no label. */
const asked = (expression: string, store = ".*") =>
  expression.replaceAll(/\$(job|instance)\b/g, ".*").replaceAll("$store", store)

describe.skipIf(isServerLeftOut)("a Prometheus that scrapes the example", { timeout: 60_000 }, () => {
  it.scopedLive("evaluates each alert, and has an answer to each question of the dashboard", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const port = yield* freePort
      yield* start("prometheus", { ...variablesOf(emulator), METRICS_PORT: String(port) })
      const stores = yield* twoStores
      const configuration = read("prometheus.yml")
        .replace("\"127.0.0.1:9464\"", `"127.0.0.1:${port}", "127.0.0.1:${stores.port}"`)
        .replace("15s", "1s")
      const prometheus = yield* Prometheus.start({
        "prometheus.yml": `global: { evaluation_interval: 100ms }\n${configuration}`,
        "alerts.yml": read("alerts.yml")
      })
      const acquired = "store_api_token_acquisitions_total{outcome=\"Success\"}"
      yield* prometheus.queryUntil(`${acquired} == 1`)
      yield* prometheus.queryUntil(`count(${acquired.replace("}", ", store=~\".+\"}")} == 0) == ${names.length}`)
      yield* emulator.revoke()
      yield* stores.use
      yield* prometheus.queryUntil(`count(increase(${acquired}[1m]) > 0) == ${names.length + 1}`)
      /** A scrape that was late leaves a gap: as soon as all are there. */
      const answers = (expression: string, stores: ReadonlyArray<string | undefined>) =>
        eventually(
          prometheus.query(expression),
          (samples) =>
            Equal.equals(
              HashSet.fromIterable(samples.map(({ metric }) => metric["store"])),
              HashSet.fromIterable(stores)
            )
        ).pipe(Effect.timeoutFail({
          duration: "30 seconds",
          onTimeout: () => new Error(`not of ${stores.join(", ")}: ${expression}`)
        }))
      for (const { expr, legendFormat } of targets) {
        // The example, whose store has no label and is not shared, and the two that share theirs.
        const samples = yield* answers(asked(expr), /_store_/.test(expr) ? names : [undefined, ...names])
        const legends = samples.map(({ metric }) => named(legendFormat, metric))
        assert.lengthOf(new Set(legends), samples.length, `${expr}: two lines of one name among ${legends.join(", ")}`)
        for (const { metric } of samples) {
          const absent = shownIn(legendFormat).filter((label) => !(label in metric))
          deepStrictEqual(absent, "store" in metric ? [] : ["store"], expr)
        }
        const [of] = names
        yield* answers(asked(expr, of), [of])
      }
      const alerts = yield* eventually(
        prometheus.alerts,
        (alerts) => alerts.every(({ health }) => health !== "unknown") && alerts.some(({ state }) => state === "firing")
      )
      assert.isAtLeast(alerts.length, 7)
      deepStrictEqual(alerts.filter(({ health }) => health !== "ok"), [])
      // Those of the two stores, as their shared stores are down; nothing else is wrong.
      const firing = alerts.filter(({ state }) => state === "firing")
      deepStrictEqual(firing.map(({ name }) => name), ["StoreTokenStoreDown"])
      const broken = yield* Effect.exit(prometheus.query("sum by (outcome (up)"))
      assert.isTrue(Exit.isFailure(broken), "what it does not take is noticed")
      deepStrictEqual(
        yield* prometheus.query("store_api_token_rejections{outcome=\"Kept\"}"),
        [],
        "as is what is not there"
      )
    }))
})
