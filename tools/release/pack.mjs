/** `npm run packages`: builds, packs and checks every published package. With `--out` the tarballs stay there. */
import "../workspace/require-node.mjs"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build, install, parsed } from "../workspace/workspace.mjs"

const { values: { out } } = parsed("npm run packages -- [--out FOLDER]", {
  options: { out: { type: "string" } }
})

install()
build()
const { checked, pack } = await import("./packages.mjs")

const work = mkdtempSync(join(tmpdir(), "packages-"))
process.on("exit", () => rmSync(work, { recursive: true }))

const { install: command, problems } = await checked(pack(out ?? work))
for (const problem of problems) process.stdout.write(`${problem}\n`)
if (out !== undefined && problems.length === 0) process.stdout.write(command)
process.exitCode = problems.length > 0 ? 1 : 0
