/**
 * `npm run changeset`: runs changesets. After `-- version`, a new major is made odd, because even majors are those of
 * the Effect 4 line: a breaking change of 1.4.2 leads to 3.0.0, and on Effect 4 from 2.4.2 to 4.0.0.
 */
import "../workspace/require-node.mjs"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { install, root, tool } from "../workspace/workspace.mjs"

const args = process.argv.slice(2)

install()
tool("changeset", args)

const [major, ...rest] = JSON.parse(readFileSync(join(root, "packages/core/package.json"), "utf8")).version.split(".")
if (args[0] === "version" && major !== "0" && Number(major) % 2 === 0) {
  const even = [major, ...rest].join(".")
  const odd = [Number(major) + 1, ...rest].join(".")
  for (const folder of readdirSync(join(root, "packages"))) {
    for (const name of ["package.json", "CHANGELOG.md"]) {
      const path = join(root, "packages", folder, name)
      if (!existsSync(path)) continue
      const text = readFileSync(path, "utf8")
      // The version of a manifest, the heading of a changelog, and the packages that it lists.
      const raised = text.replaceAll(
        new RegExp(`("version": "|## |@store-api/[\\w-]+@)${even}(?=["\\s])`, "g"),
        `$1${odd}`
      )
      if (raised !== text) writeFileSync(path, raised)
    }
  }
}
