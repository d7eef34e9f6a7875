/**
 * `npm run runtimes`: runs the test suite on each Node that pins.json pins, and core's contract on these, Bun, Deno and
 * workerd. With names, such as `-- node26 bun`, runs only these. `-- --ci` runs only the contract. `--write` writes the
 * figures into docs/evidence/runtimes.md. `--check` runs nothing, and compares that page with the pins.
 */
import "../workspace/require-node.mjs"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { read, write } from "../interop/page.mjs"
import { build, install, root } from "../workspace/workspace.mjs"
import { binaryOf, isNode, names, pins, unsupported } from "./binaries.mjs"

const say = (text) => process.stdout.write(`${text}\n`)

const end = (...sentences) => {
  for (const sentence of sentences) process.stderr.write(`${sentence}\n`)
  process.exit(1)
}

const flags = ["--check", "--ci", "--write"]
const given = process.argv.slice(2)
const [isChecking, isCi, isWriting] = flags.map((flag) => given.includes(flag))
const named = given.filter((argument) => !flags.includes(argument))
const unknown = named.filter((name) => !names.includes(name))
if (unknown.length > 0) end(`Unknown: ${unknown.join(", ")}. Available: ${[...names, ...flags].join(", ")}.`)

const path = join(root, "docs", "evidence", "runtimes.md")
const rows = () => read(readFileSync(path, "utf8")).map(({ row }) => row)

const isGood = (row) =>
  Number(row["checks on fetch passed"]) > 0 && row["checks failed"] === "0" &&
  (!isNode(row.runtime) || (Number(row["tests passed"]) > 0 && row["tests failed"] === "0"))

/** The page must have each pinned runtime at its version, with all checks passed, and the oldest supported Node. */
const problemsOfPage = () => {
  const found = new Map(rows().map((row) => [row.runtime, row]))
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const floor = engines.node.replace(/^>=/, "")
  const isFloorPinned = names.some((name) => isNode(name) && pins[name].version.startsWith(`${floor}.`))
  return [
    ...names.filter((name) => found.get(name)?.version !== pins[name].version || !isGood(found.get(name)))
      .map((name) => `${name}: the page must have ${pins[name].version}, with all tests and checks passed`),
    ...[...found.keys()].filter((runtime) => !names.includes(runtime)).map((runtime) => `${runtime}: not pinned`),
    ...(isFloorPinned ? [] : [`Node ${floor}: not pinned`])
  ]
}

/** Writes the result of a runtime. Keeps the rows of other runtimes if they have the pinned version. */
const writeResult = ({ checks, name, seconds, tests = { passed: "", failed: "", skipped: "" } }) => {
  const row = {
    "runtime": name,
    "version": pins[name].version,
    "tests passed": `${tests.passed}`,
    "tests failed": `${tests.failed}`,
    "tests skipped": `${tests.skipped}`,
    "checks on fetch passed": `${checks.passed}`,
    "checks failed": `${checks.failed}`,
    "seconds": `${seconds}`,
    "measured on": new Date().toISOString().slice(0, 10)
  }
  const found = [...rows().filter(({ runtime }) => runtime !== name), row]
  const kept = names.flatMap((name) =>
    found.filter(({ runtime, version }) => runtime === name && version === pins[name].version)
  )
  writeFileSync(path, write(readFileSync(path, "utf8"), kept.map((row) => ({ table: "runtimes", row }))))
}

if (isChecking) {
  const problems = problemsOfPage()
  if (problems.length > 0) end("docs/evidence/runtimes.md: run npm run runtimes -- --write:", ...problems)
  say(`docs/evidence/runtimes.md has the ${names.length} pinned runtimes.`)
  process.exit(0)
}

const reason = unsupported()
if (reason !== undefined) end(reason)

install()
build("tsconfig.json")
build("tools/runtimes")

// Imported here because they need the installation above.
const { withBundles } = await import("./bundles.mjs")
const { contract, endLeftovers, suite } = await import("./measure.mjs")

const measure = async (name, folder) => {
  const binary = binaryOf(name)
  const started = performance.now()
  say(`\n=== ${name}, ${pins[name].version}`)
  const checks = await contract(isNode(name) ? "node" : name, binary, folder)
  // In CI the suite has already run on the machine's Node.
  const tests = isNode(name) && !isCi ? await suite(binary, pins[name].version) : undefined
  const seconds = Math.round((performance.now() - started) / 1000)
  const left = await endLeftovers()
  const problems = [...checks.problems, ...(tests?.problems ?? [])]
  return {
    name,
    checks,
    tests,
    seconds,
    problems: left > 0 ? [...problems, `${left} processes left behind`] : problems
  }
}

const summary = ({ checks, name, problems, seconds, tests }) =>
  [
    `${name} ${pins[name].version}, ${seconds} s:`,
    ...(tests === undefined ? [] : [`${tests.passed} tests passed, ${tests.failed} failed, ${tests.skipped} skipped;`]),
    `${checks.passed} checks passed, ${checks.failed} failed`,
    ...problems.map((problem) => `\n  ${problem}`)
  ].join(" ")

const results = await withBundles(async (folder) => {
  const results = []
  for (const name of names.filter((name) => named.length === 0 || named.includes(name))) {
    const result = await measure(name, folder)
    results.push(result)
    // After each runtime, so that a failure of a later one does not lose the figures.
    if (isWriting) writeResult(result)
  }
  return results
}).catch(({ message }) => end(message))

say(`\n${results.map(summary).join("\n")}`)
process.exit(results.length > 0 && results.every(({ problems }) => problems.length === 0) ? 0 : 1)
