/** Tests the alerts with promtool: when each fires, and that a mistake in one is detected. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { read } from "./support/dashboard.js"
import { isLeftOut, promtool, type Verdict } from "./support/prometheus.js"

const files = {
  "alerts.yml": read("alerts.yml"),
  "alerts.test.yml": read("alerts.test.yml"),
  "prometheus.yml": read("prometheus.yml")
}

const names = [...files["alerts.yml"].matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name)

const passes = ({ passed, said }: Verdict) => {
  assert.isTrue(passed, said)
}

/** The files, with a pattern in these alerts replaced. */
const changed = (names: ReadonlyArray<string>, pattern: RegExp, by: string): typeof files => {
  const parts = files["alerts.yml"].split(/(?=- alert: )/).map((part) => {
    if (!names.some((name) => part.startsWith(`- alert: ${name}\n`))) return part
    assert.match(part, pattern)
    return part.replace(pattern, by)
  })
  return { ...files, "alerts.yml": parts.join("") }
}

const tried = (rules: typeof files) => promtool(rules, "test", "rules", "alerts.test.yml")

/** The files, with only the tests of this alert. */
const only = (name: string, rules: typeof files): typeof files => {
  const [head = "", ...tests] = files["alerts.test.yml"].split(/(?=^ {2}- name: )/m)
  return { ...rules, "alerts.test.yml": [head, ...tests.filter((test) => test.includes(name))].join("") }
}

/** The alerts that promtool reported as failed. */
const noticed = ({ passed, said }: Verdict) => {
  assert.isFalse(passed)
  return names.filter((name) => said.includes(`alertname: ${name}, `))
}

describe.skipIf(isLeftOut)("examples/prometheus", { timeout: 60_000 }, () => {
  it("can be loaded: the rules, and the configuration that names them", async () => {
    passes(await promtool(files, "check", "rules", "alerts.yml"))
    passes(await promtool(files, "check", "config", "prometheus.yml"))
    const broken = changed(["StoreTokenGone"], /time\(\)/, "time(")
    const withoutRules = { "prometheus.yml": files["prometheus.yml"] }
    assert.isFalse((await promtool(broken, "check", "rules", "alerts.yml")).passed)
    assert.isFalse((await promtool(broken, "check", "config", "prometheus.yml")).passed)
    assert.isFalse((await promtool(withoutRules, "check", "config", "prometheus.yml")).passed)
  })

  it("alerts fire and stop as in alerts.test.yml", async () => {
    passes(await tried(files))
  })

  it("an alert that never fires is detected", async () => {
    const never = changed(names, /expr: (?:>-\n(?: {10}.*\n)+|.*\n)/, "expr: vector(0) > 1\n")
    deepStrictEqual(noticed(await tried(never)), names)
  })

  it("an alert without its waiting period is detected", async () => {
    const waiting = names.filter((name) =>
      new RegExp(`- alert: ${name}\n(?: {8}.*\n)*? {8}for: `).test(files["alerts.yml"])
    )
    assert.isAbove(waiting.length, 5)
    deepStrictEqual(noticed(await tried(changed(waiting, /for: .*\n/, "for: 0s\n"))), waiting)
  })

  it.each([
    { rule: "failures are outweighed by a success", pattern: /unless\n.*\n/, by: "" },
    { rule: "only a refusal counts for an hour", pattern: /outcome="TokenRefusedError"/, by: "outcome!=\"Success\"" },
    { rule: "a refusal counts for an hour", pattern: /\[1h:1m\]/, by: "[6m:1m]" },
    { rule: "a success after the refusal ends it", pattern: / >\n/, by: " >= bool\n" }
  ])("StoreTokenGone without it is noticed: $rule", async ({ by, pattern }) => {
    const rules = only("StoreTokenGone", changed(["StoreTokenGone"], pattern, by))
    deepStrictEqual(noticed(await tried(rules)), ["StoreTokenGone"])
  })

  it("each alert has situations in which it fires, and in which it does not", () => {
    assert.isAtLeast(names.length, 7)
    const situations = [
      ...files["alerts.test.yml"].matchAll(/alertname: (\w+),?\s+eval_time: \w+,?\s+exp_alerts:(?: (\[\]))?/g)
    ]
    for (const name of names) {
      const fires = situations.filter(([, alert]) => alert === name).map(([, , none]) => none === undefined)
      assert.sameMembers([...new Set(fires)], [true, false], name)
    }
  })
})
