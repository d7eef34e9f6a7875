/** The parts of the dashboard that tests check. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"

const DataSource = Schema.Struct({
  type: Schema.Literal("prometheus"),
  uid: Schema.Literal("${datasource}")
})

const Thresholds = Schema.Struct({
  steps: Schema.Array(
    Schema.Struct({ color: Schema.String, value: Schema.NullOr(Schema.Number) })
  )
})

const Dashboard = Schema.parseJson(Schema.Struct({
  templating: Schema.Struct({
    list: Schema.Array(Schema.Struct({
      name: Schema.String,
      type: Schema.String,
      query: Schema.Union(Schema.String, Schema.Struct({ query: Schema.String }))
    }))
  }),
  panels: Schema.Array(Schema.Struct({
    id: Schema.Int,
    type: Schema.Literal("stat", "timeseries"),
    title: Schema.NonEmptyString,
    datasource: DataSource,
    gridPos: Schema.Struct({ x: Schema.Int, y: Schema.Int, w: Schema.Int, h: Schema.Int }),
    fieldConfig: Schema.Struct({
      defaults: Schema.Struct({
        unit: Schema.Literal("s", "percentunit", "short"),
        thresholds: Schema.optional(Thresholds)
      })
    }),
    targets: Schema.Array(
      Schema.Struct({
        datasource: DataSource,
        expr: Schema.String,
        legendFormat: Schema.String
      })
    )
  }))
}))

/** A file of examples/prometheus. */
export const read = (name: string) =>
  readFileSync(join(import.meta.dirname, "..", "..", "prometheus", name), "utf8")

const { panels, templating } = Schema.decodeUnknownSync(Dashboard)(read("dashboard.json"))

export { panels }

export type Panel = (typeof panels)[number]

export const targets = panels.flatMap((panel) => panel.targets)

/** The values that the variables offer. */
export const variables = templating.list.flatMap(({ query, type }) =>
  type === "query" && typeof query !== "string" ? query.query : []
)

/** The query of a browser with all jobs and instances selected, and one store, or all stores and series without one. */
export const asked = (expression: string, store = ".*") =>
  expression.replaceAll(/\$(job|instance)\b/g, ".*").replaceAll("$store", store)

/** The labels that a legend shows. */
export const shownIn = (legend: string) =>
  [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label)

/** Renders a legend like Grafana, with nothing for a missing label. */
export const named = (legend: string, labels: Readonly<Record<string, string>>) =>
  legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? "")
