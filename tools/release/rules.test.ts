/** The versions and tags of a release, and what a release refuses. */
import { spawnSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import { majorProblems, publications, versionProblems, withOddMajor } from "./rules.mjs"

describe("a release", () => {
  it("has one version for all packages of a major", () => {
    assert.deepStrictEqual(versionProblems(["1.0.0", "1.0.0"]), [])
    for (const versions of [["1.0.0", "0.9.0"], []]) {
      assert.lengthOf(versionProblems(versions), 1)
    }
  })

  it("has an odd major for Effect 3, and the next one for Effect 4", () => {
    assert.deepStrictEqual([
      ...majorProblems("1.4.2", "2.4.2"),
      ...majorProblems("3.0.0", "4.0.0")
    ], [])
    for (
      const [effect3, effect4] of [
        ["1.4.2", "2.4.1"],
        ["2.0.0", "3.0.0"],
        ["0.1.0", "1.1.0"],
        ["1.0.0", "4.0.0"]
      ]
    ) {
      assert.lengthOf(majorProblems(effect3 ?? "", effect4 ?? ""), 1, effect3)
    }
  })

  it("raises an even major to the odd one that follows, wherever changesets wrote it", () => {
    const text = (version: string) =>
      `"version": "${version}",\n"effect": "^2.0.0"\n## ${version}\n- in 2.0.0\n- @store-api/core@${version}\n`
    for (
      const [from, to] of [["2.0.0", "3.0.0"], ["1.5.0", "1.5.0"], ["0.1.0", "0.1.0"], [
        "10.2.1",
        "11.2.1"
      ]] as const
    ) {
      assert.strictEqual(withOddMajor(text(from)), text(to))
    }
  })

  it("tags as effect3 only what exists for both majors", () => {
    const [core, cli] = [{ name: "@store-api/core" }, { name: "@store-api/cli" }]
    assert.deepStrictEqual(publications([core, cli], [core]), [
      { ...core, tag: "effect3" },
      { ...cli, tag: "latest" },
      { ...core, tag: "latest" }
    ])
  })
})

it.each([
  ["packs nothing without a repository to name", "release.mjs", "Nothing was packed: GITHUB_"],
  ["publishes nothing without an identity", "publish.mjs", "Nothing was published: without an"]
])("a release %s", (_, script, reason) => {
  const env = { ...process.env, ACTIONS_ID_TOKEN_REQUEST_URL: "", GITHUB_REPOSITORY: "" }
  const { status, stderr } = spawnSync(process.execPath, [`tools/release/${script}`], {
    encoding: "utf8",
    env
  })
  assert.strictEqual(status, 1)
  assert.include(stderr, reason)
})
