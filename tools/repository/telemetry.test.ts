/** Compares docs/guides/telemetry.md with the sources: metrics, spans and log lines by their names. */
import { assert, describe, it } from "vitest"
import { trackedFiles } from "./support/command.js"
import { codes, packageSources, read, rows, sections } from "./support/pages.js"

const all = sections(read("docs/guides/telemetry.md"))
const namesIn = (heading: string, column: number) =>
  rows(all.find((section) => section.heading === heading)?.text ?? "").map((cells) => codes(cells[column] ?? "")[0])

/** The first group of each match of a pattern in the packages that an application imports. */
const inSources = (pattern: RegExp) =>
  [...packageSources()]
    .filter(([path]) => !/^(?:cli|emulator)[/]/.test(path))
    .flatMap(([, source]) => [...source.matchAll(pattern)].map(([, name = ""]) => name))

describe("docs/guides/telemetry.md", () => {
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

describe("the words of docs/reference/glossary.md", () => {
  const words = rows(read("docs/reference/glossary.md"))
  const row = (word: string) => words.find(([name]) => name === word) ?? assert.fail(word)

  it("are the names of the metrics, each in one row", () => {
    const metrics = words.flatMap(([word = "", , , metrics = ""]) => codes(metrics).map((metric) => ({ metric, word })))
    assert.sameMembers(
      metrics.map(({ metric }) => metric),
      inSources(/Metric\.(?:counter|gauge|histogram)\(\s*"([^"]+)"/g)
    )
    for (const { metric, word } of metrics) assert.include(metric, word)
  })

  it("are the names of the API", () => {
    const source = [...packageSources()].filter(([path]) => path.startsWith("core/")).map(([, text]) => text).join()
    const names = words.flatMap(([, , api = ""]) => codes(api))
    assert.isAtLeast(names.length, 10)
    for (const name of names) assert.match(source, new RegExp(`(\\breadonly |\\bclass |")${name}\\b`))
    const states = /readonly state: ([^\n]+)/.exec(source)?.[1] ?? ""
    assert.sameMembers(
      [...codes(row("state")[1] ?? "")],
      [...states.matchAll(/"(\w+)"/g)].map(([, state = ""]) => state)
    )
  })

  it("have replaced former words, which occur nowhere", () => {
    const former = /[Cc]ool[-_ ]down|coolDown|\b(patience|zone)\b/
    for (const text of ["cool-down", "coolDowns", "with patience", "the zone"]) assert.match(text, former)
    const pages = trackedFiles("*.md").filter((file) => !file.startsWith("docs/evidence/mutation"))
    const texts = [...packageSources(), ...pages.map((file) => [file, read(file)] as const)]
    assert.deepStrictEqual(texts.filter(([, text]) => former.test(text)).map(([path]) => path), [])
  })
})
