import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "vitest"
import { problemsOf } from "../src/fleet/checks.js"
import { outcomeOf, type Setup } from "../src/fleet/fleet.js"
import * as formulas from "../src/fleet/formulas.js"
import { document } from "../src/fleet/page.js"
import { plots } from "../src/fleet/plots.js"
import { common, type Digest, digest, minute, renewal, scenarios } from "../src/fleet/scenarios.js"
import { type Sleeper, Sleepers } from "../src/fleet/virtualTime.js"

const processes = 15

/** A run with two renewals, at 55 and at 110 minutes. */
const threeLives: Setup = { ...common, processes, lasts: 160 * minute }

describe("a simulated fleet", { timeout: 60_000 }, () => {
  it("sends one token request per token lifetime, and the other processes find the token", async () => {
    const outcome = await outcomeOf(threeLives)
    assert.strictEqual(outcome.requests.length, 3)
    assert.strictEqual(outcome.failed, 0)
    const [first = 0, ...others] = outcome.requests
    const due = first + common.life - 5 * minute
    for (const [index, at] of others.entries()) {
      const earliest = first + (index + 1) * (due - first)
      assert.isAtLeast(at, earliest)
      assert.isBelow(at, earliest + (index + 1) * minute)
    }
    // Every process gets each of the three tokens with one acquisition.
    assert.strictEqual(outcome.acquisitions.length, 3 * processes)
    assert.strictEqual(outcome.acquisitions.filter(({ asked }) => asked).length, 3)
    const second = digest(threeLives, outcome, renewal)
    assert.strictEqual(second.acquisitions, processes)
    assert.strictEqual(second.requestsInView, 1)
    const sent = (operation: string) =>
      outcome.commands.filter(({ at, operation: one }) => one === operation && at >= due && at < due + 2 * minute)
        .length
    assert.deepStrictEqual([sent("put"), sent("release"), sent("remove")], [1, 1, 0])
    // One look per process, four more commands of the renewing one, and at least two more of each that waits for it.
    const joined = processes - second.found - 1
    assert.isAtLeast(second.commands, processes + 4 + 2 * joined)
    assert.isAtMost(Math.abs(second.commands - formulas.renewal(processes, common.answer, common)), 1)
  })

  it("sends one token request per process and token lifetime without sharing", async () => {
    const outcome = await outcomeOf({ ...threeLives, shared: false })
    assert.strictEqual(outcome.requests.length, 3 * processes)
    assert.strictEqual(outcome.commands.length, 0)
  })

  it("sends at most five token requests per lifetime of a token that the endpoint repeats until it expires", async () => {
    const repeating: Setup = { ...threeLives, repeats: true, lasts: 90 * minute }
    const outcome = await outcomeOf(repeating)
    const ofFirst = outcome.requests.filter((at) => at < common.life)
    assert.isAtMost(ofFirst.length, 5)
    assert.isAtLeast(ofFirst.length, 3)
    const alone = await outcomeOf({ ...repeating, shared: false })
    assert.isAbove(alone.requests.length, 3 * processes)
    assert.strictEqual(outcome.failed + alone.failed, 0)
    assert.isAtLeast(outcome.requests.at(ofFirst.length) ?? 0, common.life)
  })

  it("starts with one token request and the commands of the formula", async () => {
    const cold: Setup = { ...common, processes, start: "together", lasts: 10_000 }
    const outcome = await outcomeOf(cold)
    assert.strictEqual(outcome.requests.length, 1)
    assert.strictEqual(outcome.commands.length, formulas.cold(processes, common.answer))
    const dead = await outcomeOf({ ...cold, dies: 1 })
    assert.strictEqual(dead.requests.length, 2)
    assert.isAtLeast(dead.requests[1] ?? 0, formulas.lease)
    const down = await outcomeOf({ ...cold, outage: { from: 0, to: minute, how: "fails" } })
    assert.strictEqual(down.requests.length, processes)
    const slow = await outcomeOf({ ...cold, capacity: processes / 2 })
    assert.isAbove(slow.requests.length, 1)
  })

  it("has the same outcome each time", async () => {
    const setup: Setup = { ...common, processes: 10, lasts: 60 * minute, start: "together" }
    const [first, second] = [await outcomeOf(setup), await outcomeOf(setup)]
    assert.deepStrictEqual(first, second)
    assert.isAbove(first.commands.length, 10)
  })

  it("leaves the platform's cryptography as it was", async () => {
    const { subtle } = globalThis.crypto
    const own = Object.getOwnPropertyDescriptors(subtle)
    const encrypt = subtle.encrypt.bind(subtle)
    Object.defineProperty(subtle, "encrypt", { configurable: true, value: encrypt })
    try {
      const before = Object.getOwnPropertyDescriptors(subtle)
      await outcomeOf({ ...common, processes: 1, lasts: 1000 })
      assert.deepStrictEqual(Object.getOwnPropertyDescriptors(subtle), before)
    } finally {
      Reflect.deleteProperty(subtle, "encrypt")
      Object.defineProperties(subtle, own)
    }
  })

  it("wakes sleepers by time, then by arrival, and skips interrupted ones", () => {
    const sleepers = new Sleepers()
    const times = Array.from({ length: 500 }, (_, index) => (index * 7919) % 101)
    const added = times.map((at) => sleepers.add(at, () => undefined))
    const interrupted = added.filter((_, index) => index % 3 === 0)
    for (const sleeper of interrupted) sleeper.wake = undefined
    const woken: Array<Sleeper> = []
    for (let next = sleepers.take(); next !== undefined; next = sleepers.take()) woken.push(next)
    const expected = added.filter(({ wake }) => wake !== undefined).sort((a, b) => a.at - b.at)
    assert.deepStrictEqual(woken, expected)
    assert.lengthOf(woken, 500 - interrupted.length)
  })
})

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8")

describe("the default behaviour of a shared token source", () => {
  const source = read("packages/core/src/SharedTokenSource.ts")

  const numbersOf = (text: string, pattern: RegExp) => {
    const [, ...found] = pattern.exec(text) ?? assert.fail(`There is no ${String(pattern)}`)
    return found.map(Number)
  }

  const seconds = (option: string) => numbersOf(source, new RegExp(`options\\.${option} \\?\\? "([\\d.]+) seconds?"`))

  const [least = 0, more = 0] = numbersOf(source, /millis \* \(([\d.]+) \+ ([\d.]+) \* chance\)/)

  it("is as the formulas assume it", () => {
    assert.deepStrictEqual(seconds("lease"), [formulas.lease / 1000])
    assert.deepStrictEqual(seconds("storeTimeout"), [formulas.storeTimeout / 1000])
    const [first] = numbersOf(source, /const firstPause = (\d+)/)
    const [growth] = numbersOf(source, /const growth = ([\d.]+)/)
    const [longest] = numbersOf(source, /const longestPause = (\d+)/)
    assert.deepStrictEqual({ first, growth, longest, jitter: least + more / 2 }, formulas.pauses)
  })

  it("is as docs/evidence/fleets.md describes it", () => {
    const page = read("docs/evidence/fleets.md")
    const [maxWait = 0] = seconds("maxWait")
    assert.deepStrictEqual(numbersOf(page, /token for (\d+) to (\d+) seconds\s+\(`maxWait`\)/), [
      Math.round(least * maxWait),
      Math.round((least + more) * maxWait)
    ])
    assert.deepStrictEqual(numbersOf(page, /the lease ends after (\d+) seconds/), seconds("lease"))
    assert.deepStrictEqual(numbersOf(page, /A process gives a command (\d+) second/), seconds("storeTimeout"))
    const { first, growth, longest } = formulas.pauses
    assert.strictEqual(growth, 1.25, "a quarter longer")
    assert.deepStrictEqual(
      numbersOf(page, /again\s+after (\d+) ms, and then after pauses that are each a quarter longer, up to (\d+) ms/),
      [first, longest]
    )
    assert.deepStrictEqual(numbersOf(page, /\(× ([\d.]+) to ([\d.]+)\), with two commands/), [least, least + more])
  })
})

describe("docs/evidence/fleets.md", () => {
  /** A page without its figures. */
  const words = (page: string) => page.replaceAll(/\d+(?:[ .]\d+)*/g, "#")

  let small: Readonly<Record<string, Digest>> = {}

  beforeAll(async () => {
    const setup: Setup = { ...common, processes: 3, lasts: 60 * minute }
    const one = digest(setup, await outcomeOf(setup), renewal)
    small = Object.fromEntries(Object.keys(scenarios).map((name) => [name, one]))
  })

  it("has the words and tables of its generator; if not: npm run bench -- fleet", async () => {
    assert.strictEqual(words(read("docs/evidence/fleets.md")), words(document(small)))
    assert.match(read("docs/evidence/fleets.md"), /\| 5 000 \| \d/)
    const title = (svg: string) => /<title>(.*)<\/title>/.exec(svg)?.[1]
    for (const [path, svg] of Object.entries(await plots(small))) {
      assert.isString(title(svg))
      assert.strictEqual(title(read(`docs/evidence/${path}`)), title(svg))
      assert.include(read("docs/evidence/fleets.md"), `](${path})`)
    }
  })

  it("is not written when the figures are wrong", () => {
    const problems = problemsOf(small)
    assert.include(problems, "cold, holder crashes: 2 token requests")
    assert.isAbove(problems.length, 10)
  })
})
