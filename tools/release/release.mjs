/**
 * `npm run release`: packs, checks and publishes the packages for both majors of Effect. Only the release workflow runs
 * it. With `-- --dry-run` it publishes nothing. `--registry URL` is for a rehearsal: another registry,
 * without provenance.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build, install, parsed, root } from "../workspace/workspace.mjs"

const { values } = parsed("npm run release -- [--dry-run] [--registry URL]", {
  options: { "dry-run": { type: "boolean", default: false }, registry: { type: "string" } }
})
const dry = values["dry-run"]
const isReal = !dry && values.registry === undefined
const registry = values.registry === undefined ? [] : ["--registry", values.registry]

let published = 0

const refuse = (reason) => {
  const done = published === 0
    ? "Nothing was published"
    : `${published} packages were published`
  process.stderr.write(`${done}: ${reason}\n`)
  process.exit(1)
}

const { ACTIONS_ID_TOKEN_REQUEST_URL, GITHUB_OUTPUT, GITHUB_REPOSITORY } = process.env
if (!GITHUB_REPOSITORY) {
  refuse("GITHUB_REPOSITORY does not name the repository of the packages.")
}
if (isReal && !ACTIONS_ID_TOKEN_REQUEST_URL) {
  refuse("without an identity of the workflow (id-token: write) there is no provenance.")
}

const npm = (args, options) =>
  spawnSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32",
    ...options
  })

const [major, minor, patch] = npm(["--version"]).stdout.trim().split(".").map((part) =>
  Number.parseInt(part)
)
if (isReal && major * 1e6 + minor * 1e3 + patch < 11_005_001) {
  refuse("npm 11.5.1 or newer is needed.")
}

install()
build()
const { checked, pack, packEffect4 } = await import("./packages.mjs")
const { majorProblems, publications } = await import("./rules.mjs")
const { buildEffect4 } = await import("../effect4/generate.mjs")

const out = mkdtempSync(join(tmpdir(), "release-"))
process.on("exit", () => rmSync(out, { recursive: true }))

buildEffect4({ repository: GITHUB_REPOSITORY })
const effect3 = await checked(pack(out, GITHUB_REPOSITORY), GITHUB_REPOSITORY)
const effect4 = await packEffect4(out, GITHUB_REPOSITORY)
const { version } = effect3.packages[0]
if (!dry && version === "0.0.0") refuse("0.0.0 is not a release: add a changeset.")

const problems = [...effect3.problems, ...effect4.problems]
if (!dry) problems.push(...majorProblems(version, effect4.packages[0].version))
if (problems.length > 0) refuse(problems.join("\n"))

/** Whether npm has this version. Fails if npm does not respond. */
const isPublished = (name, version) => {
  const { status, stderr, stdout } = npm([
    "view",
    `${name}@${version}`,
    "version",
    "--json",
    ...registry
  ])
  if (status === 0) return stdout.trim() !== ""
  return /E404/.test(stdout + stderr)
    ? false
    : refuse(`Cannot read from npm whether it has ${name} ${version}.\n${stderr}`)
}

for (
  const { name, tag, tarball, version } of publications(effect3.packages, effect4.packages)
) {
  if (isPublished(name, version)) {
    process.stdout.write(`${name} ${version} is published already\n`)
    continue
  }
  const options = [
    "--tag",
    tag,
    ...registry,
    `--provenance=${isReal}`,
    ...dry ? ["--dry-run"] : []
  ]
  if (
    npm(["publish", tarball, "--access", "public", ...options], { stdio: "inherit" })
      .status !== 0
  ) {
    refuse(`npm rejected ${name} ${version}.`)
  }
  published++
}

if (GITHUB_OUTPUT !== undefined) {
  appendFileSync(
    GITHUB_OUTPUT,
    `published=${String(published > 0 && !dry)}\nversion=${version}\n`
  )
}
process.stdout.write(
  dry ? `${published} packages would be published\n` : `${published} packages published\n`
)
