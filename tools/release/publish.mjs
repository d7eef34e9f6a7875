/**
 * `node tools/release/publish.mjs FOLDER`: publishes what `npm run release` has packed into the folder. Only the
 * release workflow runs it. It uses nothing but Node and npm, because its job has the identity that npm trusts. With
 * `--dry-run` it publishes nothing. `--registry URL` is for a rehearsal: another registry, without provenance.
 */
import { spawnSync } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"

const { positionals: [folder = "."], values } = parseArgs({
  allowPositionals: true,
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

const { ACTIONS_ID_TOKEN_REQUEST_URL, GITHUB_OUTPUT } = process.env
if (isReal && !ACTIONS_ID_TOKEN_REQUEST_URL) {
  refuse("without an identity of the workflow (id-token: write) there is no provenance.")
}

const npm = (args, options) =>
  spawnSync("npm", args, {
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

const { packages, version } = JSON.parse(readFileSync(join(folder, "release.json"), "utf8"))

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

for (const { file, name, tag, version } of packages) {
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
  const tarball = join(folder, file)
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
