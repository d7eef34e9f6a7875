/** The dashboard beside what the examples serve, what the documentation lists, and the language of its questions. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect } from "effect"
import { panels, shownIn, targets, variables } from "./support/dashboard.js"
import { freePort, start, variablesOf } from "./support/program.js"
import { isLeftOut, promtool } from "./support/promtool.js"
import { eventually, fetched, labelsOf } from "./support/scrape.js"
import { names, twoStores } from "./support/stores.js"

/** Prometheus itself adds these to whatever it scrapes. */
const ofPrometheus = ["job", "instance"]

/** What an expression asks for and is not served. */
const missing = (
  served: ReadonlyMap<string, ReadonlySet<string>>,
  expression: string,
  legend = ""
): ReadonlyArray<string> => {
  const selectors = [...expression.matchAll(/(store_api_token_\w+)(?:\{([^}]*)\})?/g)]
  const grouped = [...expression.matchAll(/ by \(([^)]*)\)/g)].flatMap(([, labels = ""]) => labels.split(/,\s*/))
  return selectors.flatMap(([, name = "", matchers = ""]) => {
    const labels = served.get(name)
    if (labels === undefined) return [name]
    const asked = [...matchers.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label)
    return [...new Set([...asked, ...shownIn(legend), ...grouped])]
      .filter((label) => !labels.has(label) && !ofPrometheus.includes(label))
      .map((label) => `${name}: ${label}`)
  })
}

/** The example's series, of a run of its own. */
const ofTheExample = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const port = yield* freePort
  yield* start("prometheus", { ...variablesOf(emulator), METRICS_PORT: String(port) })
  return yield* eventually(
    fetched(`http://127.0.0.1:${port}/metrics`),
    ({ text }) => text.includes("store_api_token_acquisitions_total{outcome=\"Success\"} 1")
  )
})

/** Those of two stores, each with a shared token store. */
const ofTwoStores = Effect.gen(function*() {
  const { port, use } = yield* twoStores
  yield* use
  return yield* eventually(
    fetched(`http://127.0.0.1:${port}/metrics`),
    ({ text }) => names.every((name) => new RegExp(`^store_api_token_store_hits_total.*"${name}"`, "m").test(text))
  )
})

describe("examples/prometheus/dashboard.json", { timeout: 60_000 }, () => {
  it.scopedLive("asks for series and labels that are served, and for no other", () =>
    Effect.gen(function*() {
      const served = labelsOf([yield* ofTheExample, yield* ofTwoStores].map(({ text }) => text).join("\n"))
      assert.isAbove(targets.length, 8)
      assert.lengthOf(variables, 3)
      deepStrictEqual(variables.flatMap((expression) => missing(served, expression)), [])
      deepStrictEqual(targets.flatMap(({ expr, legendFormat }) => missing(served, expr, legendFormat)), [])
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
    }))

  it("shows each metric of docs/telemetry.md", () => {
    const documented = [
      ...readFileSync(join(import.meta.dirname, "..", "..", "docs", "telemetry.md"), "utf8").matchAll(
        /^\| `(store_api_token_\w+)` \|/gm
      )
    ].map((
      [, name = ""]
    ) => name)
    assert.isAtLeast(documented.length, 8)
    const asked = targets.map(({ expr }) => expr).join("\n")
    const unasked = (names: ReadonlyArray<string>) =>
      names.filter((name) => !new RegExp(`\\b${name}(_total|_bucket)?\\b`).test(asked))
    // No name is found in a longer one.
    deepStrictEqual(unasked([...documented, "store_api_token_store"]), ["store_api_token_store"])
  })

  it("keeps stores apart: in each selection, in each sum and in each legend", () => {
    const mixing = (expression: string, legend: string) =>
      [
        ...[...expression.matchAll(/store_api_token_\w+(\{[^}]*\})?/g)].filter(([, matchers = ""]) =>
          !matchers.includes("store=~\"$store\"")
        ),
        ...[...expression.matchAll(/\b(?:sum|min|max)(?: by \(([^)]*)\))? ?\(/g)].filter(([, labels = ""]) =>
          !labels.split(", ").includes("store")
        ),
        ...(shownIn(legend).includes("store") ? [] : [[legend]])
      ].map(([found]) => found)
    assert.isAbove(targets.length, 8)
    deepStrictEqual(targets.flatMap(({ expr, legendFormat }) => mixing(expr, legendFormat)), [])
    deepStrictEqual(
      mixing("sum by (le) (increase(store_api_token_a_total{job=~\"$job\"}[1h])) / sum(store_api_token_b)", "half"),
      ["store_api_token_a_total{job=~\"$job\"}", "store_api_token_b", "sum by (le) (", "sum(", "half"]
    )
  })

  it("one token that is kept by chance looks like none, as no alert fires for it; two do not", () => {
    const kept = panels.filter(({ targets }) => targets.some(({ expr }) => expr.includes("outcome=\"Kept\"")))
    assert.lengthOf(kept, 1)
    const steps = kept.flatMap(({ fieldConfig }) => fieldConfig.defaults.thresholds?.steps ?? [])
    const colour = (count: number) => steps.filter(({ value }) => value === null || value <= count).at(-1)?.color
    deepStrictEqual([colour(0), colour(1)], ["green", "green"])
    assert.notStrictEqual(colour(2), "green")
  })

  it("its panels have numbers and titles of their own", () => {
    for (const key of ["id", "title"] as const) {
      assert.strictEqual(new Set(panels.map((panel) => panel[key])).size, panels.length)
    }
  })

  it.skipIf(isLeftOut)("asks in Prometheus' language", () => {
    const rules = (expressions: ReadonlyArray<string>) =>
      promtool(
        {
          "rules.json": JSON.stringify({
            groups: [{
              name: "dashboard",
              rules: expressions.map((expr, index) => ({ record: `panel:${index}`, expr }))
            }]
          })
        },
        "check",
        "rules",
        "rules.json"
      )
    const expressions = targets.map(({ expr }) => expr)
    for (const expr of expressions) {
      assert.notMatch(expr, /\$(?!job\b|instance\b|store\b)/, "a variable that it does not have")
    }
    const { passed, said } = rules(expressions)
    assert.isTrue(passed, said)
    assert.include(said, `${expressions.length} rules found`)
    for (const expr of expressions) assert.isFalse(rules([expr.replace(/\(([^()]*)/, "($1,,")]).passed, expr)
  })
})
