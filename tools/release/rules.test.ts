/** Applies the rules for published packages to packages that are assembled from manifests and sources. */
import { assert, describe, it } from "vitest"
import { effect4, manifestOf } from "../effect4/manifest.mjs"
import { filesOf, read } from "../repository/support/pages.js"
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

const faults: ReadonlyArray<[what: string, folder: string, change: (files: Files) => Files, found: RegExp]> = [
  ["no licence", "core", without("LICENSE"), /^LICENSE is missing/],
  ["a test", "core", set("test/all.ts", ""), /^test\/all\.ts should not/],
  ["no declarations", "core", without("dist/TokenSource.d.ts"), /^dist\/TokenSource\.d\.ts is missing/],
  ["output of a deleted source", "core", set("dist/Old.js", ""), /^dist\/Old\.js should not/],
  [
    "a map to elsewhere",
    "core",
    set("dist/TokenResponse.d.ts.map", `{"sources":["../../src/TokenResponse.ts"]}`),
    /^dist\/TokenResponse\.d\.ts\.map points to/
  ],
  ["another licence", "core", manifest((all) => ({ ...all, license: "ISC" })), /^license is/],
  ["no provenance", "core", field("publishConfig", ({ access }) => ({ access })), /^publishConfig is/],
  ["a script at installation", "core", field("scripts", () => ({ postinstall: "node ." })), /^scripts is/],
  ["side effects", "core", manifest((all) => ({ ...all, sideEffects: true })), /^sideEffects is/],
  ["open internals", "core", field("exports", ({ "./internal/*": _, ...others }) => others), /^exports is/],
  ["an open command", "emulator", field("exports", ({ "./bin": _, ...others }) => others), /^exports is/],
  [
    "an application with a public module",
    "cli",
    field("exports", (all) => ({ ...all, "./flags": "./dist/flags.js" })),
    /^exports is/
  ],
  ["an undeclared dependency", "core", set("dist/TokenResponse.js", `import "undici"`), /^undici is imported but not/],
  [
    "a dependency that is not needed",
    "cli",
    field("dependencies", (all) => ({ ...all, "@effect/vitest": catalog["@effect/vitest"] })),
    /^@effect\/vitest is declared but not imported/
  ],
  [
    "its own Effect",
    "redis",
    field("dependencies", (all) => ({ ...all, effect: catalog["effect"] })),
    /^effect must be a peer/
  ],
  [
    "a range of the workspace",
    "platform-node",
    field("dependencies", (all) => ({ ...all, "@store-api/core": "workspace:^" })),
    /^the range of @store-api\/core is workspace/
  ],
  [
    "a range that is not tested",
    "core",
    field("peerDependencies", (all) => ({ ...all, effect: "^3.0.0" })),
    /^the range of effect is \^3\.0\.0/
  ],
  ["a repository", "core", manifest((all) => ({ ...all, repository: "github:owner/name" })), /^repository is/]
]

describe("the rules for published packages", () => {
  it.each(["core", "platform-node", "emulator", "redis", "cli"])("hold for %s", (folder) => {
    assert.deepStrictEqual(problemsOf(packed(folder)), [])
  })

  it.each(faults)("report %s in %s, and nothing else", (_, folder, change, found) => {
    const [problem = "", ...others] = problemsOf(change(packed(folder)))
    assert.match(problem, found)
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
