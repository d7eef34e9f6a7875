/**
 * `node benchmarks/dist/fleet/main.js [--check]`: simulates the fleets, and writes `docs/evidence/fleets.md` and its
 * plots. The figures are counts on virtual time with seeded randomness, so every run gives the same on every machine.
 * `--check` writes nothing. Exits with code 1 if a count is wrong, or if `--check` finds a page that differs.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { inOwnProcess } from "../harness.js"
import { problemsOf } from "./checks.js"
import type { Digest } from "./digest.js"
import { pages } from "./report.js"
import { scenarios } from "./scenarios.js"

const began = performance.now()
const seconds = () => Math.round((performance.now() - began) / 1000)

const digests: Record<string, Digest> = {}
const names = Object.keys(scenarios)

const work = async (): Promise<void> => {
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    // Most objects of a fleet are short-lived, so a young generation of this size halves the time.
    digests[name] = await inOwnProcess<Digest>("fleet/scenarioProcess.js", [name], {
      flags: ["--max-semi-space-size=128"],
      timeout: 900_000
    })
    process.stderr.write(`${`${seconds()}`.padStart(4)} s  ${name}\n`)
  }
}

await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work))

const file = (path: string) => fileURLToPath(new URL(`../../../../docs/evidence/${path}`, import.meta.url))
const written = await pages(digests)
const problems = problemsOf(digests)

if (process.argv.includes("--check")) {
  for (const [path, text] of written) {
    if (readFileSync(file(path), "utf8") !== text) problems.push(`docs/evidence/${path} differs from this run`)
  }
} else {
  mkdirSync(file("fleets"), { recursive: true })
  for (const [path, text] of written) writeFileSync(file(path), text)
  process.stdout.write(`Written: ${[...written.keys()].map((path) => `docs/evidence/${path}`).join(", ")}\n`)
}
process.stdout.write(`${seconds()} s in all\n`)

for (const what of problems) process.stderr.write(`Broken: ${what}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
