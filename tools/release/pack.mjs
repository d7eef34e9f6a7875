/**
 * `npm run packages`: builds, packs and checks every published package. With `--out` the tarballs stay there.
 *
 * `--effect4` generates and packs those for Effect 4 instead. `--test` then installs the tarballs of both majors, runs
 * programs with them, and exchanges tokens between them.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build, install, parsed } from "../workspace/workspace.mjs"

const usage = "npm run packages -- [--effect4 [--test]] [--out FOLDER]"
const { values: { effect4, out, test } } = parsed(usage, {
  options: {
    effect4: { type: "boolean", default: false },
    out: { type: "string" },
    test: { type: "boolean", default: false }
  }
})

install()
process.stdout.write(`Building the packages for Effect ${effect4 ? 4 : 3}: some minutes…\n`)
const { buildEffect4 } = await import("../effect4/generate.mjs")
if (effect4) buildEffect4({})
else build()
const { checked, pack, packEffect4 } = await import("./packages.mjs")

const work = mkdtempSync(join(tmpdir(), "packages-"))
process.on("exit", () => rmSync(work, { recursive: true, force: true }))

const folder = out ?? join(work, "tarballs")
const { install: command, packages, problems } = await (effect4
  ? packEffect4(folder)
  : checked(pack(folder)))
for (const problem of problems) process.stdout.write(`${problem}\n`)
if (problems.length > 0) process.exit(1)
process.stdout.write(out === undefined ? "To keep the tarballs, add --out FOLDER.\n" : command)
if (effect4 && test) await (await import("./bothMajors.mjs")).tryBoth(work, packages)
// Ends the programs that still run.
process.exit()
