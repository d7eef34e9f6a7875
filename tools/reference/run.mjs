/** `npm run reference`: writes docs/reference/api from the docstrings. `-- --check` fails if a page is not current. */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { install, root, takesOnly, tool } from "../workspace/workspace.mjs"

takesOnly("--check")
install()

const check = process.argv.includes("--check")
const pages = join(root, "docs", "reference", "api")
const out = check ? mkdtempSync(join(tmpdir(), "reference-")) : pages
tool("typedoc", ["--options", "tools/reference/typedoc.json", "--out", out])
if (check) {
  const { status } = spawnSync("git", ["diff", "--no-index", "--stat", pages, out], {
    stdio: "inherit"
  })
  rmSync(out, { recursive: true })
  if (status !== 0) {
    process.stderr.write("docs/reference/api is not current. Run: npm run reference\n")
  }
  process.exitCode = status === 0 ? 0 : 1
}
