/**
 * `npm run typetest`: checks the types that a user of the built packages sees, with the tests in
 * `packages/<name>/typetest`.
 */
import "../workspace/require-node.mjs"
import { pathToFileURL } from "node:url"
import { build, install, root, tool } from "../workspace/workspace.mjs"

install()
build()

// Uses only the compiler of the workspace, without a download.
process.env.TSTYCHE_TYPESCRIPT_MODULE = String(
  new URL("node_modules/typescript/lib/typescript.js", pathToFileURL(root))
)
process.env.TSTYCHE_NPM_REGISTRY = "http://127.0.0.1:9"
tool("tstyche", ["--config", "tools/typetest/tstyche.json", ...process.argv.slice(2)])
