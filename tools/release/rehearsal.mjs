/**
 * `npm run release:rehearsal`: releases the packages for both majors of Effect from a clone of the last commit to
 * a registry on this machine, with the commands of a real release, installs them by their tags with npm and pnpm, and
 * runs the first program of the README. Then it releases a fix, updates the same projects and runs the program again.
 * Takes about six minutes.
 */
import "../workspace/require-node.mjs"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { install, pnpmArguments, root, takesOnly } from "../workspace/workspace.mjs"

takesOnly()
install()
// The program of the README is generated for Effect 4.
install("tools/effect4/workspace")
const { nodeOf } = await import("../effect4/generate.mjs")
const consumers = await import("./consumer.mjs")
const { freePort, installers, programOf, run, runProgram, start, startEmulator, wordsOf } =
  consumers

const work = mkdtempSync(join(tmpdir(), "rehearsal-"))
process.on("exit", () => rmSync(work, { recursive: true, force: true }))

const say = (text) => process.stdout.write(`${text}\n`)

const address = `127.0.0.1:${await freePort()}`
const registry = `http://${address}/`

// Other packages come from the registry that this machine uses.
const config = {
  storage: join(work, "storage"),
  uplinks: { npm: { url: await run(root, "npm", ["config", "get", "registry"]) } },
  packages: {
    "@store-api/*": { access: "$all", publish: "$authenticated" },
    "**": { access: "$all", proxy: "npm" }
  },
  auth: { htpasswd: { file: join(work, "users") } },
  log: { type: "stdout", level: "warn" }
}
writeFileSync(join(work, "verdaccio.yaml"), JSON.stringify(config))
const node = nodeOf()
// verdaccio asks for node-fetch by a tag, which not every registry has.
writeFileSync(
  join(work, "package.json"),
  JSON.stringify({ private: true, overrides: { "node-fetch": "^2.7.0" } })
)
await run(work, "npm", installers.npm(["--prefer-offline", "verdaccio@6.10.4"]))
const verdaccio = [
  "node_modules/verdaccio/bin/verdaccio",
  "--config",
  "verdaccio.yaml",
  "--listen",
  address
]
await start(node, verdaccio, /http address/, { cwd: work })

const user = { name: "rehearsal", password: "an-invented-password" }
const response = await fetch(`${registry}-/user/org.couchdb.user:${user.name}`, {
  method: "PUT",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(user)
})
const { token } = await response.json()

const released = {
  GITHUB_REPOSITORY: "owner/name",
  npm_config_cache: join(work, "cache"),
  PATH: `${dirname(node)}${delimiter}${process.env.PATH}`
}
const env = { ...released, npm_config_registry: registry }

const clone = join(work, "clone")
await run(work, "git", ["clone", "--quiet", root, clone])
// A shell between npm and npm drops a variable of this name.
writeFileSync(join(clone, ".npmrc"), `//${address}/:_authToken=${token}\n`)
const git = ["-c", "user.name=rehearsal", "-c", "user.email=rehearsal@example.invalid"]

const versionIn = (folder) =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version

/** Raises the version and publishes it, as the jobs of the release workflow do. Returns the version by tag. */
const release = async () => {
  await run(clone, "npm", ["run", "--silent", "changeset", "--", "version"])
  await run(clone, "git", [...git, "commit", "--quiet", "--all", "--message=version"])
  const packed = mkdtempSync(join(work, "packed-"))
  await run(clone, "npm", ["run", "release", "--", "--out", packed], released)
  const output = await run(
    clone,
    "node",
    ["tools/release/publish.mjs", packed, "--registry", registry],
    released
  )
  say(output.split("\n").filter((line) => /^\+ |published/.test(line)).join("\n"))
  const version = versionIn(join(clone, "packages/core"))
  return { effect3: version, latest: version.replace(/^\d+/, (major) => Number(major) + 1) }
}

/** An empty project. Without a manifest, npm would install into the folder above. */
const project = (name) => {
  const folder = join(work, name)
  mkdirSync(folder)
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ private: true, type: "module" })
  )
  return folder
}

const message = "Cannot reach the token endpoint"
const fixed = `${message} after the fix`

/** Expects the version of a tag in a project, with the fix or without, and runs the program. */
const check = async ({ folder, installer, tag }, versions, hasFix) => {
  const core = join(folder, "node_modules/@store-api/core")
  const version = versionIn(core)
  if (version !== versions[tag]) {
    throw new Error(`${folder}: expected ${versions[tag]}, got ${version}`)
  }
  const code = readFileSync(join(core, "dist/internal/advice.js"), "utf8")
  if (!code.includes(message) || code.includes(fixed) !== hasFix) {
    throw new Error(`${folder}: the code is not ${version}`)
  }
  const program = ["--experimental-strip-types", "--no-warnings", "app.mts"]
  say(
    `${installer}, tag ${tag}: ${version}, ${await runProgram(folder, node, service, program)}`
  )
}

const first = await release()
const tools = project("tools")
const effect3 = wordsOf(3).filter((word) => /^@?effect/.test(word))
await run(tools, "npm", installers.npm(["@store-api/emulator@effect3", ...effect3]), env)
const service = await startEmulator(tools)

const projects = [{ major: 3, tag: "effect3" }, { major: 4, tag: "latest" }].flatMap((line) =>
  Object.keys(installers).map((installer) => ({
    ...line,
    installer,
    folder: project(`${installer}-${line.tag}`)
  }))
)
for (const one of projects) {
  writeFileSync(join(one.folder, "app.mts"), programOf(one.major))
  await run(one.folder, "npm", installers[one.installer](wordsOf(one.major)), env)
  await check(one, first, false)
}

const source = join(clone, "packages/core/src/internal/advice.ts")
writeFileSync(source, readFileSync(source, "utf8").replace(message, fixed))
writeFileSync(
  join(clone, ".changeset/fix.md"),
  `---\n"@store-api/core": patch\n---\n\nA fix.\n`
)
const second = await release()
const updates = {
  npm: ["update", "--no-audit", "--no-fund"],
  pnpm: pnpmArguments(["update", "--ignore-workspace"])
}
for (const one of projects) {
  await run(one.folder, "npm", updates[one.installer], env)
  await check(one, second, true)
}
say("the packages for both majors of Effect are published, installed, fixed and updated")
process.exit(0)
