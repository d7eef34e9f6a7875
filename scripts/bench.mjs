/**
 * `npm run bench`: measures the built packages beside their peers and writes docs/benchmarks.md; with `-- --quick` it
 * takes less time and writes nothing. `npm run bench -- fleet` simulates fleets and writes docs/fleets.md; with `--check` it
 * writes nothing, and fails when what is there is not what it would write.
 */
import "./require-node.mjs"
import { build, install, takesOnly } from "./workspace.mjs"

const fleet = process.argv[2] === "fleet"

takesOnly(...(fleet ? ["fleet", "--check"] : ["--quick"]))
install()
build("benchmarks")

await import(fleet ? "../benchmarks/dist/fleet/main.js" : "../benchmarks/dist/main.js")
