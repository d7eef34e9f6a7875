/** Breaks a package in each way that the rules for published packages report. Tests versions, tags and changesets. */
import { spawnSync } from "node:child_process"
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { manifestOf } from "../effect4/generate.mjs"
import { effect4 } from "../effect4/versions.mjs"
import { root } from "../support/command.js"
import { folders, releaseFields } from "../workspace/published.mjs"
import {
  lineProblems,
  problemsOf,
  publications,
  versionProblems,
  withOddMajor
} from "./rules.mjs"

type Json = Record<string, unknown>

const manifest = JSON.parse(manifestOf("redis")) as Json
const { dependencies, peerDependencies } = manifest as {
  readonly dependencies: Json
  readonly peerDependencies: Json
}

const rangeOf = (name: string) => effect4.ranges[name]

/** The problems of a package of one module after a change of its manifest and of its files. */
const problems = (
  change: Json = {},
  changed: Readonly<Record<string, string | undefined>> = {},
  repository?: string
) => {
  const files: Readonly<Record<string, string | undefined>> = {
    LICENSE: "",
    "README.md": "",
    "src/index.ts": "",
    "dist/index.js": "",
    "dist/index.d.ts.map": "",
    ...changed,
    "package.json": JSON.stringify({ ...manifest, ...change })
  }
  const present = Object.entries(files).filter((file): file is [string, string] =>
    file[1] !== undefined
  )
  return problemsOf(new Map(present), repository, effect4)
}

describe("the rules for published packages", () => {
  it.each<[string, Json, Readonly<Record<string, string | undefined>>?]>([
    ["LICENSE is missing", {}, { LICENSE: undefined }],
    ["test/all.ts should not", {}, { "test/all.ts": "" }],
    ["dist/Old.js should not", {}, { "dist/Old.js": "" }],
    ["license is", { license: "ISC" }],
    ["engines is", { engines: { node: ">=20" } }],
    ["publishConfig is", { publishConfig: { access: "public" } }],
    ["scripts is", { scripts: { postinstall: "node ." } }],
    ["sideEffects is", { sideEffects: true }],
    ["repository is", { repository: "github:owner/name" }],
    ["exports is", { exports: { ".": "./dist/index.js" } }],
    ["effect must be a peer", {
      dependencies: { ...dependencies, effect: rangeOf("effect") }
    }],
    ["the range of effect is ^3.0.0", {
      peerDependencies: { ...peerDependencies, effect: "^3.0.0" }
    }],
    ["the range of @store-api/core", {
      peerDependencies: { ...peerDependencies, "@store-api/core": "workspace:^" }
    }]
  ])("report: %s, and nothing else", (found, change, files) => {
    assert.deepStrictEqual(problems(), [])
    const [problem = "", ...others] = problems(change, files)
    assert.include(problem, found)
    assert.isEmpty(others)
  })

  it("want each package of a release to name its repository", () => {
    const named = releaseFields("@store-api/redis", "owner/name")
    assert.deepStrictEqual(problems(named, {}, "owner/name"), [])
    for (const fields of [problems({}, {}, "owner/name"), problems(named, {}, "owner/fork")]) {
      assert.deepStrictEqual(fields.map((problem) => problem.split(" ")[0]), [
        "repository",
        "homepage",
        "bugs"
      ])
    }
    assert.throws(() => releaseFields("@store-api/redis", "not a repository"))
  })

  it("want one version, an odd major for Effect 3, and the next one for Effect 4, with the same minor and patch", () => {
    assert.deepStrictEqual(versionProblems(["1.0.0", "1.0.0"]), [])
    for (const versions of [["1.0.0", "0.9.0"], []]) {
      assert.lengthOf(versionProblems(versions), 1)
    }
    assert.deepStrictEqual([
      ...lineProblems("1.4.2", "2.4.2"),
      ...lineProblems("3.0.0", "4.0.0")
    ], [])
    for (
      const [effect3, effect4] of [
        ["1.4.2", "2.4.1"],
        ["2.0.0", "3.0.0"],
        ["0.1.0", "1.1.0"],
        ["1.0.0", "4.0.0"]
      ]
    ) {
      assert.lengthOf(lineProblems(effect3 ?? "", effect4 ?? ""), 1, effect3)
    }
  })

  it("raise an even major to the odd one that follows, wherever changesets wrote it", () => {
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

  it("want changesets of published packages, each with a kind and a text", () => {
    for (
      const file of readdirSync(join(root, ".changeset")).filter((name) =>
        name.endsWith(".md")
      )
    ) {
      const [, head = "", text = ""] = readFileSync(join(root, ".changeset", file), "utf8")
        .split(/^---$/m)
      const kinds = head.trim().split("\n").map((line) =>
        /^"(.+)": (?:major|minor|patch)$/.exec(line)?.[1] ?? line
      )
      assert.includeMembers([...folders.keys()], kinds, file)
      assert.match(text, /\w/, file)
    }
  })

  it("tag Effect 4 and what exists once as latest, and the rest of Effect 3 as effect3", () => {
    const [core, cli] = [{ name: "@store-api/core" }, { name: "@store-api/cli" }]
    assert.deepStrictEqual(publications([core, cli], [core]), [
      { ...core, tag: "effect3" },
      { ...cli, tag: "latest" },
      { ...core, tag: "latest" }
    ])
  })
})

it.each([["GPL-3.0", "LICENSE", 1], ["MIT", "COPYING", 1], ["MIT", "LICENSE", 0]])(
  "a bundle with code under %s, whose text is in %s, ends with code %i",
  (license, file, code) => {
    const folder = mkdtempSync(join(tmpdir(), "bundle-"))
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    write("package.json", JSON.stringify({ bin: { command: "bin/command.js" } }))
    write("dist/bin.js", "import 'other'")
    write(
      "node_modules/other/package.json",
      JSON.stringify({ name: "other", license, main: "index.js" })
    )
    write("node_modules/other/index.js", "console.log()")
    write(`node_modules/other/${file}`, "the text")
    const { status, stderr } = spawnSync(process.execPath, [
      "tools/workspace/bundle.mjs",
      folder
    ], { encoding: "utf8" })
    rmSync(folder, { recursive: true })
    assert.strictEqual(status, code)
    assert.strictEqual(stderr.includes("other may not be bundled"), code === 1)
  }
)

it.each([
  ["without a repository to name", "", "GITHUB_REPOSITORY"],
  ["without an identity", "owner/name", "without an identity"]
])("npm run release refuses %s", (_, repository, reason) => {
  const env = {
    ...process.env,
    ACTIONS_ID_TOKEN_REQUEST_URL: "",
    GITHUB_REPOSITORY: repository
  }
  const { status, stderr } = spawnSync(process.execPath, ["tools/release/release.mjs"], {
    encoding: "utf8",
    env
  })
  assert.strictEqual(status, 1)
  assert.include(stderr, `Nothing was published: ${reason}`)
})
