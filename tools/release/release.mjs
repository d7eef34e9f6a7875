/**
 * `npm run release`: packs what a release publishes, looks at it, and publishes those very tarballs. The release workflow
 * runs it; with `-- --dry-run` it publishes nothing. Elsewhere it refuses. `--registry URL` is for trying it.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { install, root } from "../workspace/workspace.mjs"

const { values } = parseArgs({
  options: { "dry-run": { type: "boolean", default: false }, registry: { type: "string" } }
})
const dry = values["dry-run"]
const registry = values.registry === undefined ? [] : ["--registry", values.registry]

let published = 0

const refuse = (reason) => {
  process.stderr.write(
    `${published === 0 ? "Nothing was published" : `${published} packages were published`}: ${reason}\n`
  )
  process.exit(1)
}

const { ACTIONS_ID_TOKEN_REQUEST_URL, GITHUB_OUTPUT, GITHUB_REPOSITORY } = process.env
if (!GITHUB_REPOSITORY) refuse("GITHUB_REPOSITORY does not say which repository the packages come from.")
if (!dry && !ACTIONS_ID_TOKEN_REQUEST_URL) {
  refuse("without an identity of the workflow (id-token: write) there is no provenance.")
}

const npm = (args, options) =>
  spawnSync("npm", args, { cwd: root, encoding: "utf8", shell: process.platform === "win32", ...options })

const atLeast = (version, [major, minor, patch]) => {
  const [a, b, c] = version.trim().split(".").map((part) => Number.parseInt(part))
  return a > major || (a === major && (b > minor || (b === minor && c >= patch)))
}
const { stdout: npmVersion } = npm(["--version"])
if (!dry && !atLeast(npmVersion, [11, 5, 1])) refuse(`npm 11.5.1 or newer is needed, and this is ${npmVersion.trim()}.`)

install()
const { publishedFolders, readJson, succeed } = await import("./packages.mjs")

const folders = publishedFolders()
const out = mkdtempSync(join(tmpdir(), "release-"))
process.on("exit", () => rmSync(out, { recursive: true }))

try {
  const checks = [join(root, "tools", "release", "pack.mjs"), "--out", out, "--repository", GITHUB_REPOSITORY]
  process.stdout.write(succeed(process.execPath, checks))
} catch ({ message }) {
  refuse(message)
}

/** Whether npm has this version; a question without an answer is no "no". */
const isPublished = ({ name, version }) => {
  const { status, stderr, stdout } = npm(["view", `${name}@${version}`, "version", "--json", ...registry])
  if (status === 0) return stdout.trim() !== ""
  return /E404/.test(stdout + stderr) ? false : refuse(`npm does not say whether it has ${name} ${version}.\n${stderr}`)
}

let release
for (const folder of folders) {
  const manifest = readJson(join(folder, "package.json"))
  release = manifest.version
  if (!dry && release === "0.0.0") refuse("0.0.0 says that nothing has been released: add a changeset.")
  if (isPublished(manifest)) {
    process.stdout.write(`${manifest.name} ${manifest.version} is there already\n`)
    continue
  }
  const file = `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`
  const args = [
    "publish",
    join(out, file),
    "--access",
    "public",
    ...registry,
    ...(dry ? ["--dry-run"] : ["--provenance"])
  ]
  const { status } = npm(args, { stdio: "inherit" })
  if (status !== 0) refuse(`npm would not take ${manifest.name} ${manifest.version}.`)
  published++
}

if (GITHUB_OUTPUT !== undefined) {
  appendFileSync(GITHUB_OUTPUT, `published=${String(published > 0 && !dry)}\nversion=${release}\n`)
}
process.stdout.write(dry ? `${published} packages would be published\n` : `${published} packages published\n`)
