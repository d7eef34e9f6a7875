/** The checks before a release is published: one version for all packages, and provenance. */
import { spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { root, run, succeed } from "../repository/support/command.js"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly version: string
}

const manifests = (tree: string): ReadonlyArray<Manifest> =>
  ["packages", "."].flatMap((folder) =>
    readdirSync(join(tree, folder))
      .map((name) => join(tree, folder, name, "package.json"))
      .filter((path) => existsSync(path) && !path.includes("node_modules"))
      .map((path) => JSON.parse(readFileSync(path, "utf8")) as Manifest)
  )

const temporary: Array<string> = []
afterAll(() => temporary.forEach((path) => rmSync(path, { recursive: true })))

/** A temporary repository with the manifests and changesets of this one. */
const copy = async (options: { readonly pending: boolean } = { pending: false }) => {
  const tree = mkdtempSync(join(tmpdir(), "release-"))
  temporary.push(tree)
  for (const file of ["package.json", "pnpm-workspace.yaml", "pnpm-lock.yaml", ".changeset"]) {
    cpSync(join(root, file), join(tree, file), { recursive: true })
  }
  const members = readdirSync(join(root, "packages")).map((name) => join("packages", name))
  for (const folder of [...members, "examples"]) {
    if (!existsSync(join(root, folder, "package.json"))) continue
    mkdirSync(join(tree, folder), { recursive: true })
    cpSync(join(root, folder, "package.json"), join(tree, folder, "package.json"))
  }
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
  for (const name of readdirSync(join(tree, ".changeset"))) {
    if (name.endsWith(".md") && !options.pending) rmSync(join(tree, ".changeset", name))
  }
  const git = (...args: ReadonlyArray<string>) =>
    succeed("git", ["-c", "user.name=test", "-c", "user.email=test@example.invalid", ...args], { cwd: tree })
  await git("init", "--quiet", "--initial-branch=main")
  await git("add", "package.json", "packages", ".changeset")
  await git("commit", "--quiet", "--message=start")
  return tree
}

const version = (tree: string) =>
  run(process.execPath, [join(root, "node_modules", "@changesets", "cli", "bin.js"), "version"], { cwd: tree })

const change = (tree: string, name: string, bump: string) => {
  writeFileSync(join(tree, ".changeset", "some-change.md"), `---\n"${name}": ${bump}\n---\n\nSomething is better.\n`)
}

const next = (version: string, bump: string) => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
  return bump === "minor" ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

const hasGit = spawnSync("git", ["--version"]).status === 0
if (!hasGit) console.warn("Tests of the versions are skipped: git is not installed.")

describe.skipIf(!hasGit && process.env["CI"] !== "true")("npm run changeset -- version", { timeout: 60_000 }, () => {
  const published = manifests(root).filter((manifest) => manifest.private !== true)

  it.each([{ name: "@store-api/core", bump: "patch" }, { name: "@store-api/cli", bump: "minor" }])(
    "gives every package the same version after a $bump of $name",
    async ({ bump, name }) => {
      const tree = await copy()
      const before = manifests(tree)
      change(tree, name, bump)
      const { status, stderr, stdout } = await version(tree)
      assert.strictEqual(status, 0, stdout + stderr)
      assert.isAbove(published.length, 2)
      for (const manifest of manifests(tree)) {
        const old = before.find(({ name }) => name === manifest.name)?.version ?? ""
        assert.strictEqual(manifest.version, manifest.private === true ? old : next(old, bump), manifest.name)
      }
      const changed = published.map(({ name }) => name.replace("@store-api/", "packages/")).filter((folder) =>
        existsSync(join(tree, folder, "CHANGELOG.md"))
      )
      assert.strictEqual(changed.length, published.length)
      const log = readFileSync(join(tree, name.replace("@store-api/", "packages/"), "CHANGELOG.md"), "utf8")
      assert.include(log, "Something is better.")
      assert.isFalse(existsSync(join(tree, ".changeset", "some-change.md")), "the changeset is used up")
    }
  )

  it("fails for an unknown package", async () => {
    const tree = await copy()
    change(tree, "@store-api/no-such-package", "minor")
    const { status } = await version(tree)
    assert.notStrictEqual(status, 0)
  })

  it("reads the pending changesets of this repository", async () => {
    const tree = await copy({ pending: true })
    const { status, stderr, stdout } = await version(tree)
    assert.strictEqual(status, 0, stdout + stderr)
    const versions = manifests(tree).filter((manifest) => manifest.private !== true).map(({ version }) => version)
    assert.strictEqual(new Set(versions).size, 1, versions.join())
    for (const version of versions) assert.match(version, /^1\./, "the major names the line of Effect")
    assert.deepStrictEqual(readdirSync(join(tree, ".changeset")).filter((name) => name.endsWith(".md")), [])
  })
})

describe("npm run release", () => {
  const release = (env: Readonly<Record<string, string>>) =>
    run(process.execPath, ["tools/release/release.mjs"], {
      env: { ACTIONS_ID_TOKEN_REQUEST_URL: "", GITHUB_REPOSITORY: "", ...env }
    })

  it("refuses without a repository to name, and without an identity", async () => {
    const nameless = await release({})
    assert.strictEqual(nameless.status, 1)
    assert.include(nameless.stderr, "Nothing was published: GITHUB_REPOSITORY")
    const unknown = await release({ GITHUB_REPOSITORY: "owner/name" })
    assert.strictEqual(unknown.status, 1)
    assert.include(unknown.stderr, "Nothing was published: without an identity")
  })
})
