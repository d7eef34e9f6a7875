/**
 * `npm run runtimes`: the test suite on each Node that is pinned in pins.json, and core's contract on the `fetch` of
 * those, of Bun, Deno and workerd. With names, such as `-- node26 bun`, only there; `-- --ci` is the contract alone, on
 * all. `--write` puts the figures into docs/evidence/runtimes.md; `--check` runs nothing and compares that page with
 * the pins.
 */
import "../workspace/require-node.mjs"
import { build, install } from "../workspace/workspace.mjs"
import { binaryOf, isNode, names, pins, unsupported } from "./binaries.mjs"
import * as page from "./page.mjs"

const say = (text) => process.stdout.write(`${text}\n`)

const end = (...sentences) => {
  for (const sentence of sentences) process.stderr.write(`${sentence}\n`)
  process.exit(1)
}

const args = process.argv.slice(2)
const flags = args.filter((arg) => arg.startsWith("-"))
const named = args.filter((arg) => !arg.startsWith("-"))
const unknown = [
  ...flags.filter((flag) => !["--ci", "--write", "--check"].includes(flag)),
  ...named.filter((name) => !names.includes(name))
]
if (unknown.length > 0) {
  end(`There is no ${unknown.join(", ")}: choose from ${names.join(", ")}, --ci, --write, --check.`)
}

if (flags.includes("--check")) {
  const problems = page.problems()
  if (problems.length > 0) {
    end("docs/evidence/runtimes.md is not of what is pinned; run npm run runtimes -- --write:", ...problems)
  }
  say(`docs/evidence/runtimes.md is of the ${names.length} runtimes that are pinned.`)
  process.exit(0)
}

const reason = unsupported()
if (reason !== undefined) end(reason)

const chosen = names.filter((name) => (named.length > 0 ? named : names).includes(name))

install()
build("tsconfig.json")
build("tools/runtimes")

// These need what has just been installed.
const { withBundles } = await import("./bundles.mjs")
const { contract } = await import("./contract.mjs")
const { endLeftovers } = await import("./processes.mjs")
const { suite } = await import("./suite.mjs")

const measure = async (name, folder) => {
  const binary = await binaryOf(name)
  const started = performance.now()
  say(`\n=== ${name}, ${pins[name].version}`)
  const checks = await contract(isNode(name) ? "node" : name, binary, folder)
  // In CI the suite runs on the Node of the machine, before this.
  const tests = isNode(name) && !flags.includes("--ci") ? await suite(binary, pins[name].version) : undefined
  const seconds = Math.round((performance.now() - started) / 1000)
  const left = await endLeftovers()
  const problems = [
    ...checks.problems,
    ...(tests?.problems ?? []),
    ...(left > 0 ? [`${left} processes left behind`] : [])
  ]
  return { name, checks, tests, seconds, problems }
}

const summary = ({ checks, name, problems, seconds, tests }) =>
  [
    `${name} ${pins[name].version}, ${seconds} s:`,
    ...(tests === undefined ? [] : [`${tests.passed} tests passed, ${tests.failed} failed, ${tests.skipped} skipped;`]),
    `${checks.passed} checks passed, ${checks.failed} failed`,
    ...problems.map((problem) => `\n  ${problem}`)
  ].join(" ")

const results = await withBundles(async (folder) => {
  await Promise.all(chosen.map(binaryOf))
  const results = []
  for (const name of chosen) {
    results.push(await measure(name, folder))
    // One by one: all of them take half an hour, and what was measured stands.
    if (flags.includes("--write")) page.write(results.slice(-1))
  }
  return results
}).catch(({ message }) => end(message))

say("")
for (const result of results) say(summary(result))

const bad = results.filter(({ checks, problems, tests }) =>
  problems.length > 0 || checks.failed > 0 || checks.passed === 0 || tests?.failed > 0 || tests?.passed === 0
)
process.exit(results.length > 0 && bad.length === 0 ? 0 : 1)
