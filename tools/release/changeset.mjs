/**
 * `npm run changeset`: runs changesets. After `-- version`, a new major is made odd, because even majors are those of
 * Effect 4: a breaking change of 1.4.2 leads to 3.0.0, and on Effect 4 from 2.4.2 to 4.0.0.
 */
import "../workspace/require-node.mjs"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { install, root, tool } from "../workspace/workspace.mjs"

const args = process.argv.slice(2)

install()
tool("changeset", args)
const { withOddMajor } = await import("./rules.mjs")

const folders = args[0] === "version" ? readdirSync(join(root, "packages")) : []
for (
  const path of folders.flatMap((name) =>
    ["package.json", "CHANGELOG.md"].map((file) => join("packages", name, file))
  )
) {
  if (existsSync(join(root, path))) {
    writeFileSync(join(root, path), withOddMajor(readFileSync(join(root, path), "utf8")))
  }
}
