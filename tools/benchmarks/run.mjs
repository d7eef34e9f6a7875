/** `npm run bench`, `npm run size`: builds the benchmarks and runs the part that is named first. See README.md. */
import "../workspace/require-node.mjs"
import { build, install, takesOnly } from "../workspace/workspace.mjs"

const part = process.argv.slice(2, 3).find((name) =>
  ["cli", "hit", "effect4", "size"].includes(name)
)

takesOnly(
  ...(part === undefined
    ? []
    : ["effect4", "size"].includes(part)
    ? [part]
    : [part, "--check"])
)
install()
build("tools/benchmarks")

if (part === "size") await (await import("./dist/size.js")).checkSizes()
else await import(part === "effect4" ? "./effect4.mjs" : "./dist/main.js")
