/**
 * `npm run runtimes`: runs the test suite on each Node that pins.json pins, and core's contract on these, Bun, Deno and
 * workerd. With names, such as `-- node26 bun`, runs only these. `-- --ci` runs only the contract. `--write` writes the
 * figures into docs/evidence/runtimes.md. `--check` runs nothing, and compares that page with the pins.
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

const flags = ["--check", "--ci", "--write"]
const given = process.argv.slice(2)
const [check, ci, write] = flags.map((flag) => given.includes(flag))
const named = given.filter((argument) => !flags.includes(argument))
const unknown = named.filter((name) => !names.includes(name))
if (unknown.length > 0) end(`Unknown: ${unknown.join(", ")}. Available: ${[...names, ...flags].join(", ")}.`)

if (check) {
  const problems = page.problems()
  if (problems.length > 0) {
    end("docs/evidence/runtimes.md does not match the pinned versions; run npm run runtimes -- --write:", ...problems)
  }
  say(`docs/evidence/runtimes.md has the ${names.length} pinned runtimes.`)
  process.exit(0)
}

const reason = unsupported()
if (reason !== undefined) end(reason)

const chosen = names.filter((name) => (named.length > 0 ? named : names).includes(name))

install()
build("tsconfig.json")
build("tools/runtimes")

// Imported here because they need the installation above.
const { withBundles } = await import("./bundles.mjs")
const { contract, suite } = await import("./measure.mjs")
const { endLeftovers } = await import("./processes.mjs")

const measure = async (name, folder) => {
  const binary = await binaryOf(name)
  const started = performance.now()
  say(`\n=== ${name}, ${pins[name].version}`)
  const checks = await contract(isNode(name) ? "node" : name, binary, folder)
  // In CI the suite has already run on the machine's Node.
  const tests = isNode(name) && !ci ? await suite(binary, pins[name].version) : undefined
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
    const result = await measure(name, folder)
    results.push(result)
    // After each runtime, so that a failure of a later one does not lose the figures.
    if (write) page.writeResult(result)
  }
  return results
}).catch(({ message }) => end(message))

say("")
for (const result of results) say(summary(result))

const bad = results.filter(({ checks, problems, tests }) =>
  problems.length > 0 || checks.failed > 0 || checks.passed === 0 || tests?.failed > 0 || tests?.passed === 0
)
process.exit(results.length > 0 && bad.length === 0 ? 0 : 1)
