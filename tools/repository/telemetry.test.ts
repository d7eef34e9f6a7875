/** docs/telemetry.md beside what the sources tell: metrics, spans and log lines by their names. */
import { assert, describe, it } from "vitest"
import { codes, packageSources, read, rows, sections } from "./support/pages.js"

const all = sections(read("docs/telemetry.md"))
const namesIn = (heading: string, column: number) =>
  rows(all.find((section) => section.heading === heading)?.text ?? "").map((cells) => codes(cells[column] ?? "")[0])

/** What the packages that an application imports say by a pattern's first group. */
const inSources = (pattern: RegExp) =>
  [...packageSources()]
    .filter(([path]) => !/^(?:cli|emulator)[/]/.test(path))
    .flatMap(([, source]) => [...source.matchAll(pattern)].map(([, name = ""]) => name))

describe("docs/telemetry.md", () => {
  it.each([
    { heading: "Metrics", column: 0, atLeast: 8, pattern: /Metric\.(?:counter|gauge|histogram)\(\s*"([^"]+)"/g },
    { heading: "Log lines", column: 1, atLeast: 4, pattern: /Effect\.log\w+\(\s*"([^"]+)"/g }
  ])("$heading: has those of the sources, and no other", ({ atLeast, column, heading, pattern }) => {
    const named = inSources(pattern)
    assert.isAtLeast(named.length, atLeast)
    assert.sameMembers(namesIn(heading, column), named)
  })

  it("Spans: has those of the sources, and that of the HTTP client", () => {
    const named = inSources(/Effect\.withSpan\(\s*"([^"]+)"/g)
    assert.isAtLeast(named.length, 2)
    assert.sameMembers(namesIn("Spans", 0), [...named, "http.client POST"])
  })

  it("Metrics: has the alerts of examples/prometheus, and no other", () => {
    const rules = [...read("examples/prometheus/alerts.yml").matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name)
    const told = rows(all.find(({ heading }) => heading === "Metrics")?.text ?? "")
      .flatMap((cells) => codes(cells[3] ?? "").filter((code) => code.startsWith("Store")))
    assert.isAtLeast(rules.length, 7)
    assert.sameMembers(told, rules)
  })
})
