/** `npm run bench`: builds the benchmarks and runs the part that the first argument names. See README.md. */
import "../workspace/require-node.mjs"
import { build, install, takesOnly } from "../workspace/workspace.mjs"

const part = process.argv.slice(2, 3).find((name) => ["fleet", "cli", "hit", "effect4"].includes(name))

takesOnly(...(part === undefined ? ["--quick"] : part === "effect4" ? [part] : [part, "--check"]))
install()
build("tools/benchmarks")

await import({ fleet: "./dist/fleet/main.js", effect4: "../effect4/bench.mjs" }[part] ?? "./dist/main.js")
