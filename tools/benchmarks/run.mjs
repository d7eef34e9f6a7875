/**
 * `npm run bench`: measures the built packages and other libraries, and writes docs/evidence/benchmarks.md. With
 * `-- --quick` it takes less time and writes nothing. `npm run bench -- fleet` simulates fleets and writes
 * docs/evidence/fleets.md; with `--check` it only compares. `npm run bench -- cli` measures the start of the command
 * line, and `npm run bench -- hit` a cached token. Both write nothing; with `--check` they fail above a limit.
 * `npm run bench -- effect4` writes the section of Effect 4.
 */
import "../workspace/require-node.mjs"
import { build, install, takesOnly } from "../workspace/workspace.mjs"

const part = process.argv.slice(2, 3).find((name) => ["fleet", "cli", "hit", "effect4"].includes(name))

takesOnly(...(part === undefined ? ["--quick"] : [part, "--check"]))
install()
build("tools/benchmarks")

await import(
  { fleet: "./dist/fleet/main.js", effect4: "../effect4/bench.mjs" }[part] ??
    (part === undefined ? "./dist/main.js" : "./dist/limits.js")
)
