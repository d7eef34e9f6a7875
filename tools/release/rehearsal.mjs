/**
 * `npm run release:rehearsal`: releases both lines from a clone of the last commit to a registry on this machine, with
 * the commands of a real release, installs them by their tags with npm and pnpm, runs the first program of the README,
 * publishes a fix and upgrades to it. Takes about four minutes.
 */
import "../workspace/require-node.mjs"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { nodeOf } from "../effect4/build.mjs"
import { blocksOf } from "../effect4/generate.mjs"
import { install, pnpmArguments, root, takesOnly } from "../workspace/workspace.mjs"

takesOnly()
install()
// The program of the README is generated for Effect 4.
install("tools/effect4/line")

const work = mkdtempSync(join(tmpdir(), "rehearsal-"))
const running = []
process.on("exit", () => {
  for (const child of running) process.kill(-child.pid, "SIGKILL")
  rmSync(work, { recursive: true, force: true })
})

const say = (text) => process.stdout.write(`${text}\n`)

/** Runs a command and returns its output. Exits at the first failure. */
const run = (cwd, command, args, env = {}) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, ...env },
    maxBuffer: 2 ** 26
  })
  if (status === 0) return stdout.trim()
  say(`${command} ${args.join(" ")} failed: ${error ?? status}\n${stdout}${stderr}`)
  return process.exit(1)
}

/** Starts a server, and waits until its output matches. */
const start = (command, args, pattern, options) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, detached: true })
    running.push(child)
    let text = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        text += chunk
        if (pattern.test(text)) resolve(text)
      })
    }
    child.once("exit", () => reject(new Error(`${command} ended: ${text}`)))
  })

const server = createServer().listen(0, "127.0.0.1")
await once(server, "listening")
const address = `127.0.0.1:${server.address().port}`
await new Promise((resolve) => server.close(resolve))
const registry = `http://${address}/`

// Other packages come from the registry that this machine uses.
const config = {
  storage: join(work, "storage"),
  uplinks: { npm: { url: run(root, "npm", ["config", "get", "registry"]) } },
  packages: { "@store-api/*": { access: "$all", publish: "$authenticated" }, "**": { access: "$all", proxy: "npm" } },
  auth: { htpasswd: { file: join(work, "users") } },
  log: { type: "stdout", level: "warn" }
}
writeFileSync(join(work, "verdaccio.yaml"), JSON.stringify(config))
const node = nodeOf()
// verdaccio asks for node-fetch by a tag, which not every registry has.
writeFileSync(join(work, "package.json"), JSON.stringify({ private: true, overrides: { "node-fetch": "^2.7.0" } }))
run(work, "npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", "verdaccio@6.10.4"])
const verdaccio = ["node_modules/verdaccio/bin/verdaccio", "--config", "verdaccio.yaml", "--listen", address]
await start(node, verdaccio, /http address/, { cwd: work })

const user = { name: "rehearsal", password: "an-invented-password" }
const response = await fetch(`${registry}-/user/org.couchdb.user:${user.name}`, {
  method: "PUT",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(user)
})
const { token } = await response.json()

const env = {
  GITHUB_REPOSITORY: "owner/name",
  npm_config_registry: registry,
  npm_config_cache: join(work, "cache"),
  PATH: `${dirname(node)}${delimiter}${process.env.PATH}`
}

const clone = join(work, "clone")
run(work, "git", ["clone", "--quiet", root, clone])
// A shell between npm and npm drops a variable of this name.
writeFileSync(join(clone, ".npmrc"), `//${address}/:_authToken=${token}\n`)
const git = ["-c", "user.name=rehearsal", "-c", "user.email=rehearsal@example.invalid"]

/** Raises the version and publishes it, as the two jobs of the release workflow do. Returns the version. */
const release = () => {
  run(clone, "npm", ["run", "--silent", "changeset", "--", "version"])
  run(clone, "git", [...git, "commit", "--quiet", "--all", "--message=version"])
  const { npm_config_registry: _, ...given } = env
  const output = run(clone, "npm", ["run", "release", "--", "--registry", registry], given)
  say(output.split("\n").filter((line) => /^\+ |published/.test(line)).join("\n"))
  return JSON.parse(readFileSync(join(clone, "packages/core/package.json"), "utf8")).version
}

/** An empty project. Without a manifest, npm would install into the folder above. */
const project = (name) => {
  const folder = join(work, name)
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
  return folder
}

const readme = readFileSync(join(root, "README.md"), "utf8")
const wordsOf = (major) => new RegExp(`^npm install (.* effect@\\^${major}.*)$`, "m").exec(readme)[1].split(" ")
const lines = [
  { major: 3, tag: "effect3", program: /^```ts\n([\s\S]*?)^```$/m.exec(readme)[1] },
  { major: 4, tag: "latest", program: blocksOf(readme)[0].code }
]
const installers = {
  npm: (args) => ["install", "--no-audit", "--no-fund", ...args],
  pnpm: (args) => pnpmArguments(["add", "--ignore-workspace", ...args])
}
const projects = lines.flatMap((line) =>
  Object.entries(installers).map(([installer, argumentsOf]) => {
    const folder = project(`${installer}-${line.tag}`)
    writeFileSync(join(folder, "app.mts"), line.program)
    return { ...line, installer, argumentsOf, folder }
  })
)

/** Runs the program of each project, and expects this version. */
const use = (versions, service, packagesOf) => {
  for (const { argumentsOf, folder, installer, major, tag } of projects) {
    run(folder, "npm", argumentsOf(packagesOf(major, tag)), env)
    const manifest = JSON.parse(readFileSync(join(folder, "node_modules/@store-api/core/package.json"), "utf8"))
    const output = run(folder, node, ["--experimental-strip-types", "--no-warnings", "app.mts"], service)
    if (manifest.version !== versions[tag] || !/^200 /.test(output)) {
      say(`${folder}: expected ${versions[tag]} and 200, got ${manifest.version} and ${output}`)
      process.exit(1)
    }
    say(
      `${installer}, tag ${tag}: ${manifest.version}, the first program of the README prints ${output.split("\n")[0]}`
    )
  }
}

const versionsOf = (version) => ({ effect3: version, latest: version.replace(/^\d+/, (major) => Number(major) + 1) })

const first = versionsOf(release())
const tools = project("tools")
run(
  tools,
  "npm",
  ["install", "@store-api/emulator@effect3", ...wordsOf(3).filter((word) => /^@?effect/.test(word))],
  env
)
const printed = await start(join(tools, "node_modules/.bin/store-api-emulator"), [], /(export \w+='[^']*'[\s\S]*){4}\n/)
const service = Object.fromEntries(
  [...printed.matchAll(/^export (\w+)='([^']*)'$/gm)].map(([, key, value]) => [key, value])
)
use(first, service, wordsOf)

writeFileSync(join(clone, ".changeset/fix.md"), `---\n"@store-api/core": patch\n---\n\nA fix.\n`)
const fixed = versionsOf(release())
// With the tag: without it, pnpm keeps a version that its range allows.
use(
  fixed,
  service,
  (major, tag) =>
    wordsOf(major).filter((word) => word.startsWith("@store-api/")).map((word) => `@${word.split("@")[1]}@${tag}`)
)
say("both lines are published, installed, fixed and upgraded")
process.exit(0)
