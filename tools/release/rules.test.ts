/** Applies the rules for published packages to packages that are assembled from manifests and sources. */
import { assert, describe, it } from "vitest"
import { effect4, manifestOf } from "../effect4/manifest.mjs"
import { filesOf, read } from "../support/pages.js"
import { catalog, lineProblems, problemsOf, publications, releaseFields, versionProblems } from "./rules.mjs"

type Json = Record<string, unknown>
type Files = ReadonlyMap<string, string>

const parse = (text: string | undefined) => JSON.parse(text ?? "") as Json

/**
 * The content of a package as `pnpm pack` writes it. The sources stand in for the output, which has the same imports.
 */
const packed = (folder: string): Files => {
  const files = new Map(
    filesOf(...["package.json", "README.md", "bin", "src"].map((path) => `packages/${folder}/${path}`))
      .map((path) => [path.replace(`packages/${folder}/`, ""), read(path)])
  )
  const manifest = files.get("package.json") ?? ""
  const ranges = manifest
    .replace(/"([^"]+)": "catalog:"/g, (_, name: string) => `"${name}": "${catalog[name] ?? "?"}"`)
    .replaceAll("workspace:^", `^${String(parse(manifest)["version"])}`)
  const output = [...files].filter(([path]) => path.startsWith("src/")).flatMap(([path, text]) => {
    const name = path.slice("src/".length, -".ts".length)
    const map = JSON.stringify({ sources: [`${"../".repeat(path.split("/").length - 1)}${path}`] })
    return [
      [`dist/${name}.js`, text],
      [`dist/${name}.d.ts`, ""],
      [`dist/${name}.js.map`, map],
      [`dist/${name}.d.ts.map`, map]
    ] as const
  })
  return new Map([...files, ...output, ["package.json", ranges], ["LICENSE", ""]])
}

const set = (path: string, text: string) => (files: Files): Files => new Map([...files, [path, text]])
const without = (path: string) => (files: Files): Files => new Map([...files].filter(([other]) => other !== path))
const manifest = (change: (manifest: Json) => Json) => (files: Files) =>
  set("package.json", JSON.stringify(change(parse(files.get("package.json")))))(files)
const field = (name: string, change: (value: Json) => Json) =>
  manifest((all) => ({ ...all, [name]: change((all[name] ?? {}) as Json) }))
const depends = (name: string, range = "?") => field("dependencies", (all) => ({ ...all, [name]: range }))

/** Changes of a package, each with the one problem that it causes. */
const faults: ReadonlyArray<[folder: string, problem: string, change: (files: Files) => Files]> = [
  ["core", "LICENSE is missing", without("LICENSE")],
  ["core", "test/all.ts should not", set("test/all.ts", "")],
  ["core", "dist/TokenSource.d.ts is missing", without("dist/TokenSource.d.ts")],
  ["core", "dist/Old.js should not", set("dist/Old.js", "")],
  ["core", "dist/AccessToken.js.map points to", set("dist/AccessToken.js.map", `{"sources":["Old.ts"]}`)],
  ["core", "license is", manifest((all) => ({ ...all, license: "ISC" }))],
  ["core", "publishConfig is", field("publishConfig", ({ access }) => ({ access }))],
  ["core", "scripts is", field("scripts", () => ({ postinstall: "node ." }))],
  ["core", "sideEffects is", manifest((all) => ({ ...all, sideEffects: true }))],
  ["core", "repository is", manifest((all) => ({ ...all, repository: "github:owner/name" }))],
  ["core", "exports is", field("exports", ({ "./internal/*": _, ...others }) => others)],
  ["emulator", "exports is", field("exports", ({ "./bin": _, ...others }) => others)],
  ["cli", "exports is", field("exports", (all) => ({ ...all, "./flags": "./dist/flags.js" }))],
  ["core", "undici is imported but not declared", set("dist/TokenResponse.js", `import "undici"`)],
  ["cli", "vitest is declared but not imported", depends("vitest", catalog["vitest"])],
  ["redis", "effect must be a peer", depends("effect", catalog["effect"])],
  ["platform-node", "the range of @store-api/core is workspace", depends("@store-api/core", "workspace:^")],
  [
    "core",
    "the range of effect is ^3.0.0",
    field("peerDependencies", (all) => ({ ...all, effect: "^3.0.0" }))
  ]
]

describe("the rules for published packages", () => {
  it.each(faults)("report in %s: %s, and nothing else", (folder, found, change) => {
    const [problem = "", ...others] = problemsOf(change(packed(folder)))
    assert.include(problem, found)
    assert.isEmpty(others)
  })

  it("want one version", () => {
    assert.deepStrictEqual(versionProblems(["1.0.0", "1.0.0"]), [])
    assert.lengthOf(versionProblems(["1.0.0", "0.9.0"]), 1)
    assert.lengthOf(versionProblems([]), 1)
  })

  it("want an odd major for Effect 3, the next one for Effect 4, and the same minor and patch", () => {
    assert.deepStrictEqual([...lineProblems("1.4.2", "2.4.2"), ...lineProblems("3.0.0", "4.0.0")], [])
    for (const [effect3, effect4] of [["1.4.2", "2.4.1"], ["2.0.0", "3.0.0"], ["0.1.0", "1.1.0"], ["1.0.0", "4.0.0"]]) {
      assert.lengthOf(lineProblems(effect3 ?? "", effect4 ?? ""), 1, effect3)
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

  it("want Node and the ranges of Effect 4 in a package of that line", () => {
    const files = set("package.json", manifestOf("redis"))(packed("redis"))
    assert.deepStrictEqual(problemsOf(files, undefined, effect4), [])
    const [node, peer, ...others] = problemsOf(files)
    assert.match(node ?? "", /^engines is/)
    assert.match(peer ?? "", /^the range of effect is \^4/)
    assert.deepStrictEqual(others, [])
  })

  it("want each package of a release to name its repository", () => {
    const named = manifest((all) => ({ ...all, ...releaseFields("@store-api/core", "owner/name") }))(packed("core"))
    assert.deepStrictEqual(problemsOf(named, "owner/name"), [])
    for (const [files, repository] of [[packed("core"), "owner/name"], [named, "owner/fork"]] as const) {
      const fields = problemsOf(files, repository).map((problem) => problem.split(" ")[0])
      assert.deepStrictEqual(fields, ["repository", "homepage", "bugs"])
    }
    assert.throws(() => releaseFields("@store-api/core", "not a repository"))
  })
})
