/** The checks before a release is published: one version for all packages, and provenance. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "vitest"
import { root, run, succeed } from "../repository/support/command.js"
import { filesOf, read } from "../repository/support/pages.js"

const files = filesOf("package.json", "*/package.json", "pnpm-*.yaml", ".changeset/*.json", ":!tools/effect4")
const scripts = ["tools/release/changeset.mjs", "tools/workspace/require-node.mjs", "tools/workspace/workspace.mjs"]

it.each([
  { change: "minor", from: "1.4.2", to: "1.5.0" },
  { change: "major", from: "1.4.2", to: "3.0.0" },
  { change: "major", from: "0.0.0", to: "1.0.0" }
])(
  "a $change change of one package raises all, and no private one, from $from to $to",
  async ({ change, from, to }) => {
    const tree = mkdtempSync(join(tmpdir(), "release-"))
    for (const file of [...files, ...scripts]) {
      cpSync(join(root, file), join(tree, file))
      if (/^packages\/.*json$/.test(file)) {
        writeFileSync(join(tree, file), read(file).replace(/"version": ".*"/, `"version": "${from}"`))
      }
    }
    symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
    writeFileSync(join(tree, ".changeset/some.md"), `---\n"@store-api/cli": ${change}\n---\n\nSomething is better.\n`)
    const git = (...args: ReadonlyArray<string>) =>
      succeed("git", ["-c", "user.name=test", "-c", "user.email=test@example.invalid", ...args], { cwd: tree })
    await git("init", "--quiet", "--initial-branch=main")
    await git("add", "package.json", "packages", ".changeset")
    await git("commit", "--quiet", "--message=start")

    await succeed(process.execPath, [join(tree, "tools/release/changeset.mjs"), "version"], { cwd: tree })

    const after = (path: string) => readFileSync(join(tree, path), "utf8")
    const manifests = files.filter((path) => path.endsWith("package.json"))
    const isPublished = (path: string) => !after(path).includes(`"private": true`)
    for (const path of manifests) if (!isPublished(path)) assert.strictEqual(after(path), read(path))
    const published = manifests.filter(isPublished)
    assert.lengthOf(published, 5)
    for (const path of published) {
      assert.include(after(path), `"version": "${to}"`)
      assert.isTrue(existsSync(join(tree, path, "../CHANGELOG.md")), path)
    }
    const changelog = after("packages/cli/CHANGELOG.md")
    assert.include(changelog, "Something is better.")
    assert.deepStrictEqual(changelog.match(/(?<=## |@)\d+\.\d+\.\d+/g), [to, to, to, to])
    rmSync(tree, { recursive: true })
  },
  60_000
)

it.each([
  ["without a repository to name", "", "GITHUB_REPOSITORY"],
  ["without an identity", "owner/name", "without an identity"]
])("npm run release refuses %s", async (_, repository, reason) => {
  const env = { ACTIONS_ID_TOKEN_REQUEST_URL: "", GITHUB_REPOSITORY: repository }
  const { status, stderr } = await run(process.execPath, ["tools/release/release.mjs"], { env })
  assert.strictEqual(status, 1)
  assert.include(stderr, `Nothing was published: ${reason}`)
})
