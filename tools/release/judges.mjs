/** The judgement of publint and of "Are the types wrong?" on a tarball. */
import { spawnSync } from "node:child_process"
import { closeSync, openSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { root } from "../workspace/workspace.mjs"

/** Strict: what publint calls a warning is an error here, and a suggestion too. */
export const publintProblems = async (tarball, { manifest }) => {
  const { buffer, byteLength, byteOffset } = readFileSync(tarball)
  const { messages } = await publint({
    pack: { tarball: buffer.slice(byteOffset, byteOffset + byteLength) },
    strict: true
  })
  return messages.map((message) => `publint: ${formatMessage(message, manifest, { color: false })}`)
}

/**
 * No rule is ignored. The profile `esm-only` looks at `node16` from ESM and at `bundler`; it leaves out what such a package
 * cannot be and does not claim: `node10`, which knows no `exports`, and `require` of an ES module. The modules behind
 * `./*` are named one by one, since attw does not look behind a wildcard.
 */
export const attwProblems = (tarball, modules) => {
  const entrypoints = ["package.json", ...modules].map((name) => name === "index" ? "." : `./${name}`)
  const cli = join(root, "node_modules", "@arethetypeswrong", "cli", "dist", "index.js")
  const args = ["--profile", "esm-only", "--format", "json", "--no-definitely-typed", "--entrypoints", ...entrypoints]
  // Into a file: it ends without waiting for a pipe to be read.
  const report = `${tarball}.attw`
  const file = openSync(report, "w")
  const { status, stderr } = spawnSync(process.execPath, [cli, tarball, ...args], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", file, "pipe"]
  })
  closeSync(file)
  const output = readFileSync(report, "utf8")
  rmSync(report)
  const answer = output.indexOf("{")
  if (answer < 0) return [`attw: ${(output + stderr).trim()}`]
  const { analysis, problems = {} } = JSON.parse(output.slice(answer))
  const seen = Object.keys(analysis.entrypoints ?? {})
  const unseen = entrypoints.filter((name) => !seen.includes(name)).map((name) => `attw: ${name} was not looked at`)
  const ignored = ["node10", "node16-cjs"]
  const found = Object.values(problems).flat()
    .filter(({ resolutionKind }) => !ignored.includes(resolutionKind))
    .map(({ entrypoint = "", kind, resolutionKind = "" }) =>
      `attw: ${[kind, entrypoint, resolutionKind].join(" ").trim()}`
    )
  // Its exit code has the last word: it may know of a problem that is not read here.
  return [...unseen, ...found, ...(status !== 0 && found.length === 0 ? [`attw: ended with ${String(status)}`] : [])]
}
