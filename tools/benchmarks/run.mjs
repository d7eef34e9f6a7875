/**
 * `npm run bench`: measures the built packages beside their peers and writes docs/evidence/benchmarks.md; with `--
 * --quick` it takes less time and writes nothing. `npm run bench -- fleet` simulates fleets and writes
 * docs/evidence/fleets.md; with `--check` it writes nothing, and fails when what is there is not what it would write.
 * `npm run bench -- cli` measures the cold start of the command line alone, `npm run bench -- hit` a cached token
 * alone. They write nothing; with `--check` they fail above a limit.
 */
import "../workspace/require-node.mjs"
import { build, install, takesOnly } from "../workspace/workspace.mjs"

const part = process.argv.slice(2, 3).find((name) => ["fleet", "cli", "hit"].includes(name))

takesOnly(...(part === undefined ? ["--quick"] : [part, "--check"]))
install()
build("tools/benchmarks")

await import(part === undefined ? "./dist/main.js" : part === "fleet" ? "./dist/fleet/main.js" : "./dist/limits.js")
