/**
 * `npm run site` builds the site into dist for any static server, and checks its links. `-- --base /project/` sets the
 * path under which it will be served. `-- --check` then opens pages in Chromium; without Chromium it fails in CI,
 * and is skipped elsewhere.
 */
import "../workspace/require-node.mjs"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { install } from "../workspace/workspace.mjs"

const fail = ({ message }) => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
process.on("uncaughtException", fail)

const { values: { base, check } } = parseArgs({
  options: {
    base: { type: "string", default: "/" },
    check: { type: "boolean", default: false }
  }
})
if (!/^\/([\w.~-]+\/)*$/.test(base)) {
  throw new Error(`--base ${base}: use a path that begins and ends with a slash.`)
}

install()
// The pages show code for Effect 4, which is generated from what is installed.
install("tools/effect4/workspace")

const { build } = await import("vitepress")
await build(fileURLToPath(new URL(".", import.meta.url)), { base }).catch(fail)

const { deadLinks, inBrowser } = await import("./check.mjs")
const dist = fileURLToPath(new URL("dist", import.meta.url))
const problems = deadLinks(dist, base)

const browser = (process.env.PATH ?? "").split(delimiter)
  .flatMap((folder) =>
    ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name))
  )
  .find(existsSync)
if (check && browser !== undefined) problems.push(...await inBrowser(browser, dist, base))
else if (check && process.env.CI === "true") {
  problems.push("Chromium is not installed. On Debian, install chromium.")
} else if (check) {
  process.stdout.write("There is no Chromium: the pages are not checked in a browser.\n")
}

for (const problem of problems) process.stderr.write(`${problem}\n`)
process.stdout.write(
  `tools/site/dist is written; ${problems.length} problems. See tools/README.md to serve it.\n`
)
process.exitCode = problems.length > 0 ? 1 : 0
