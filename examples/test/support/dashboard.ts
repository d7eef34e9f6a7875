/** The parts of the dashboard that tests check. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"

const DataSource = Schema.Struct({ type: Schema.Literal("prometheus"), uid: Schema.Literal("${datasource}") })

const Thresholds = Schema.Struct({
  steps: Schema.Array(Schema.Struct({ color: Schema.String, value: Schema.NullOr(Schema.Number) }))
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
    title: Schema.NonEmptyString,
    datasource: DataSource,
    fieldConfig: Schema.Struct({ defaults: Schema.Struct({ thresholds: Schema.optional(Thresholds) }) }),
    targets: Schema.Array(Schema.Struct({ datasource: DataSource, expr: Schema.String, legendFormat: Schema.String }))
  }))
}))

/** A file of examples/prometheus. */
export const read = (name: string) => readFileSync(join(import.meta.dirname, "..", "..", "prometheus", name), "utf8")

const { panels, templating } = Schema.decodeUnknownSync(Dashboard)(read("dashboard.json"))

export { panels }

export const targets = panels.flatMap((panel) => panel.targets)

/** The values that the variables offer. */
export const variables = templating.list.flatMap(({ query, type }) =>
  type === "query" && typeof query !== "string" ? query.query : []
)

/** The labels that a legend shows. */
export const shownIn = (legend: string) => [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label)

/** Renders a legend like Grafana, with nothing for a missing label. */
export const named = (legend: string, labels: Readonly<Record<string, string>>) =>
  legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? "")
