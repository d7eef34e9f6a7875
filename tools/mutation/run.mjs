/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and counts
 * the changes that its tests find. Takes two to three hours. With names, as in `npm run mutation -- TokenResponse`, it
 * measures only these files. Exits with code 1 when a file is below the threshold.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { install } from "../workspace/workspace.mjs"

install()

const { Stryker } = await import("@stryker-mutator/core")
const { explanations, files } = await import("./files.mjs")

const names = process.argv.slice(2)
const wanted = files.filter(({ path }) => names.length === 0 || names.includes(basename(path, ".ts")))
if (wanted.length < Math.max(names.length, 1)) {
  const known = files.map(({ path }) => basename(path, ".ts"))
  process.stderr.write(`Unknown file. The measured files are: ${known.join(", ")}\n`)
  process.exit(1)
}

const tempDirName = mkdtempSync(join(tmpdir(), "mutation-"))
process.on("exit", () => rmSync(tempDirName, { recursive: true, force: true }))

for (const { path } of wanted) {
  process.env.MUTATION_FILE = path
  const lines = readFileSync(path, "utf8").split("\n")
  try {
    // Sets the exit code below the threshold.
    const stryker = new Stryker({ configFile: "tools/mutation/stryker.config.mjs", mutate: [path], tempDirName })
    for (const { location, status } of await stryker.runMutationTest()) {
      if (status !== "Survived" && status !== "NoCoverage") continue
      const code = lines[location.start.line - 1].trim()
      const [, why] = Object.entries(explanations).find(([start]) => code.startsWith(start)) ?? []
      process.stdout.write(`${path}:${location.start.line}: ${why ?? "not explained in files.mjs"}\n`)
    }
  } catch (error) {
    process.stderr.write(`${path}: ${error.message}\n`)
    process.exitCode = 1
  }
}
