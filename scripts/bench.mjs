/**
 * `npm run bench`: measures the built packages beside their peers and writes docs/benchmarks.md; with `-- --quick` it
 * takes less time and writes nothing.
 */
import "./require-node.mjs"
import { build, install, takesOnly } from "./workspace.mjs"

takesOnly("--quick")
install()
build("benchmarks")

await import("../benchmarks/dist/main.js")
