/** The checks before a release is published: one version for all packages, and provenance. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root, run, succeed } from "../support/command.js"
import { filesOf, read } from "../support/pages.js"

interface Manifest {
  readonly private?: boolean
  readonly version: string
}

const files = filesOf("package.json", "*/package.json", "pnpm-*.yaml", ".changeset/*.json", ":!tools/effect4")
const scripts = ["tools/release/changeset.mjs", "tools/workspace/require-node.mjs", "tools/workspace/workspace.mjs"]

describe("npm run changeset -- version", { timeout: 60_000 }, () => {
  it.each([
    { change: "minor", from: "1.4.2", to: "1.5.0" },
    { change: "major", from: "1.4.2", to: "3.0.0" },
    { change: "major", from: "0.0.0", to: "1.0.0" }
  ])("raises all packages, and no private one, from $from to $to after a $change change of one", async (row) => {
    const tree = mkdtempSync(join(tmpdir(), "release-"))
    const manifestOf = (path: string) => JSON.parse(readFileSync(join(tree, path), "utf8")) as Manifest
    for (const file of [...files, ...scripts]) {
      cpSync(join(root, file), join(tree, file))
      if (/^packages\/.*json$/.test(file)) {
        writeFileSync(join(tree, file), read(file).replace(/"version": ".*"/, `"version": "${row.from}"`))
      }
    }
    symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
    writeFileSync(
      join(tree, ".changeset", "some.md"),
      `---\n"@store-api/cli": ${row.change}\n---\n\nSomething is better.\n`
    )
    const git = (...args: ReadonlyArray<string>) =>
      succeed("git", ["-c", "user.name=test", "-c", "user.email=test@example.invalid", ...args], { cwd: tree })
    await git("init", "--quiet", "--initial-branch=main")
    await git("add", "package.json", "packages", ".changeset")
    await git("commit", "--quiet", "--message=start")

    await succeed(process.execPath, [join(tree, "tools/release/changeset.mjs"), "version"], { cwd: tree })

    const manifests = files.filter((path) => path.endsWith("package.json"))
    const isPrivate = (path: string) => manifestOf(path).private === true
    for (const path of manifests.filter(isPrivate)) {
      assert.strictEqual(readFileSync(join(tree, path), "utf8"), read(path))
    }
    const published = manifests.filter((path) => !isPrivate(path))
    assert.lengthOf(published, 5)
    assert.deepStrictEqual([...new Set(published.map((path) => manifestOf(path).version))], [row.to])
    for (const path of published) assert.isTrue(existsSync(join(tree, path, "../CHANGELOG.md")), path)
    const changelog = readFileSync(join(tree, "packages/cli/CHANGELOG.md"), "utf8")
    assert.include(changelog, "Something is better.")
    assert.deepStrictEqual(changelog.match(/(?<=## |@)\d+\.\d+\.\d+/g), [row.to, row.to, row.to, row.to])
    rmSync(tree, { recursive: true })
  })
})

describe("npm run release", () => {
  it.each([
    ["without a repository to name", "", "GITHUB_REPOSITORY"],
    ["without an identity", "owner/name", "without an identity"]
  ])("refuses %s", async (_, repository, reason) => {
    const { status, stderr } = await run(process.execPath, ["tools/release/release.mjs"], {
      env: { ACTIONS_ID_TOKEN_REQUEST_URL: "", GITHUB_REPOSITORY: repository }
    })
    assert.strictEqual(status, 1)
    assert.include(stderr, `Nothing was published: ${reason}`)
  })
})
