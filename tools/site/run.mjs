/**
 * `npm run site`: builds README, docs and the rest of pages.mjs into dist, as pages that any static server can
 * serve. `-- --base /project/` is the path that they will be served under. With `-- --check` every page is then looked at in
 * a real Chromium; without one that is passed over, but with CI=true it fails.
 */
import "../workspace/require-node.mjs"
import { parseArgs } from "node:util"
import { install } from "../workspace/workspace.mjs"

const fail = (message) => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const options = () => {
  try {
    return parseArgs({
      options: { base: { type: "string", default: "/" }, check: { type: "boolean", default: false } }
    })
  } catch ({ message }) {
    return fail(message)
  }
}

const { base, check } = options().values
if (!/^\/([\w.~-]+\/)*$/.test(base)) fail(`--base ${base}: a path that begins and ends with a slash.`)

install()

const { build, out } = await import("./build.mjs")
await build(base).catch(({ message }) => fail(message))
process.stdout.write("Written: tools/site/dist\n")

if (check) {
  const { findBrowser } = await import("./check/browser.mjs")
  const browser = findBrowser()
  const none = "There is no Chromium on this machine (Debian: chromium)"
  if (browser === undefined && process.env.CI === "true") fail(`${none}.`)
  if (browser === undefined) process.stdout.write(`${none}: nobody has looked at the site.\n`)
  else {
    const { problems, summary } = await (await import("./check/main.mjs")).check(browser, out, base)
    for (const problem of problems) process.stdout.write(`${problem}\n`)
    process.stdout.write(`${summary}; ${problems.length} problems\n`)
    process.exitCode = problems.length > 0 ? 1 : 0
  }
}
