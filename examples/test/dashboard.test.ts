/** Compares the dashboard with the documentation. prometheus.slow.test.ts tests the metrics of the examples. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { panels, shownIn, targets } from "./support/dashboard.js"

describe("examples/prometheus/dashboard.json", () => {
  it("shows each metric of docs/guides/telemetry.md", () => {
    const documented = [
      ...readFileSync(
        join(import.meta.dirname, "..", "..", "docs", "guides", "telemetry.md"),
        "utf8"
      ).matchAll(
        /^\| `(store_api_token_\w+)` \|/gm
      )
    ].map((
      [, name = ""]
    ) => name)
    assert.isAtLeast(documented.length, 8)
    const asked = targets.map(({ expr }) => expr).join("\n")
    const unasked = (names: ReadonlyArray<string>) =>
      names.filter((name) => !new RegExp(`\\b${name}(_total|_bucket)?\\b`).test(asked))
    // Control: a part of a name is not found.
    deepStrictEqual(unasked([...documented, "store_api_token_store"]), [
      "store_api_token_store"
    ])
  })

  it("keeps stores apart: in each selection, in each sum and in each legend", () => {
    const mixing = (expression: string, legend: string) =>
      [
        ...[...expression.matchAll(/store_api_token_\w+(\{[^}]*\})?/g)].filter((
          [, matchers = ""]
        ) => !matchers.includes("store=~\"$store\"")),
        ...[...expression.matchAll(/\b(?:sum|min|max)(?: by \(([^)]*)\))? ?\(/g)].filter((
          [, labels = ""]
        ) => !labels.split(", ").includes("store")),
        ...(shownIn(legend).includes("store") ? [] : [[legend]])
      ].map(([found]) => found)
    assert.isAbove(targets.length, 8)
    deepStrictEqual(
      targets.flatMap(({ expr, legendFormat }) => mixing(expr, legendFormat)),
      []
    )
    deepStrictEqual(
      mixing(
        "sum by (le) (increase(store_api_token_a_total{job=~\"$job\"}[1h])) / sum(store_api_token_b)",
        "half"
      ),
      [
        "store_api_token_a_total{job=~\"$job\"}",
        "store_api_token_b",
        "sum by (le) (",
        "sum(",
        "half"
      ]
    )
  })

  it("shows one token that is kept by chance in the same colour as none, and two in another", () => {
    const kept = panels.filter(({ targets }) =>
      targets.some(({ expr }) => expr.includes("outcome=\"Kept\""))
    )
    assert.lengthOf(kept, 1)
    const steps = kept.flatMap(({ fieldConfig }) =>
      fieldConfig.defaults.thresholds?.steps ?? []
    )
    const colour = (count: number) =>
      steps.filter(({ value }) => value === null || value <= count).at(-1)?.color
    deepStrictEqual([colour(0), colour(1)], ["green", "green"])
    assert.notStrictEqual(colour(2), "green")
  })

  it("has a different number and title for each panel", () => {
    for (const key of ["id", "title"] as const) {
      assert.strictEqual(new Set(panels.map((panel) => panel[key])).size, panels.length)
    }
  })

  it("uses only variables that it defines", () => {
    const unknown = (expression: string) => /\$(?!job\b|instance\b|store\b)/.test(expression)
    deepStrictEqual(targets.filter(({ expr }) => unknown(expr)), [])
    assert.isTrue(unknown("up{job=~\"$jobs\"}"))
  })
})
