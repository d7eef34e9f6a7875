/**
 * `npm run reference`: writes docs/reference from the doc comments; with `-- --check` it writes nothing, and fails when
 * what is there is not what it would write.
 */
import "../workspace/require-node.mjs"
import { install, takesOnly } from "../workspace/workspace.mjs"

takesOnly("--check")
install()

const { outdated, write } = await import("./files.mjs")

if (process.argv.includes("--check")) {
  const paths = outdated()
  for (const path of paths) process.stderr.write(`not current: docs/reference/${path}\n`)
  if (paths.length > 0) process.stderr.write("Run: npm run reference\n")
  process.exitCode = paths.length === 0 ? 0 : 1
} else {
  process.stdout.write(`Written: docs/reference, ${write()} pages\n`)
}
