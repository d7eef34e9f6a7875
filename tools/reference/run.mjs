/** `npm run reference`: writes docs/reference/api from the docstrings. `-- --check` fails if a page is not current. */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
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
  const isCurrent = (stdio) => spawnSync("git", ["diff", "--no-index", "--stat", pages, out], { stdio }).status === 0
  const problems = isCurrent("inherit") ? [] : ["docs/reference/api is not current. Run: npm run reference"]
  // Control: the comparison finds a page that differs.
  appendFileSync(join(out, "README.md"), "one more line\n")
  if (isCurrent("ignore")) problems.push("The check does not notice a page that differs.")
  rmSync(out, { recursive: true })
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}
