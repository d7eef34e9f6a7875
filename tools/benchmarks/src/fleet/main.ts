/**
 * `npm run bench -- fleet`: simulates the fleets, and writes docs/evidence/fleets.md and its plots. The figures are
 * counts on virtual time with seeded randomness, so every run gives the same on every machine. With `--check` it writes
 * nothing, and fails if the page differs. Fails if a count is wrong.
 */
import { availableParallelism } from "node:os"
import { inOwnProcess } from "../harness.js"
import { read, report, tell, write } from "../page.js"
import { problemsOf } from "./checks.js"
import { document } from "./page.js"
import { plots } from "./plots.js"
import type { run } from "./scenarios.js"
import { type Digest, scenarios } from "./scenarios.js"

const digests: Record<string, Digest> = {}
const names = Object.keys(scenarios)

const work = async (): Promise<void> => {
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    // Most objects of a fleet are short-lived, so a young generation of this size halves the time.
    const options = { flags: ["--max-semi-space-size=128"], timeout: 900_000 }
    digests[name] = await inOwnProcess<typeof run>("fleet/scenarios.js", "run", [name], options)
    tell(name)
  }
}

await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work))

const written = { "fleets.md": document(digests), ...await plots(digests) }
const problems = problemsOf(digests)
if (process.argv.includes("--check")) {
  for (const [path, text] of Object.entries(written)) {
    if (read(path) !== text) problems.push(`docs/evidence/${path} differs from this run`)
  }
} else write(written)
tell("in all")
report(problems)
