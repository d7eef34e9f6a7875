/** Applies the rules for published packages to packages that are assembled from manifests and sources. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect4, manifestOf } from "../effect4/manifest.mjs"
import { root } from "../repository/support/command.js"
import { catalog, folders, lineProblems, problemsOf, publications, releaseFields, versionProblems } from "./rules.mjs"

type Json = Record<string, unknown>
type Files = ReadonlyMap<string, string>

const parse = (text: string | undefined) => JSON.parse(text ?? "") as Json

/**
 * The content of a package as `pnpm pack` writes it. The sources stand in for the output, which has the same imports.
 */
const packed = (folder: string): Files => {
  const read = (path: string) => readFileSync(join(root, "packages", folder, path), "utf8")
  const list = (path: string) =>
    existsSync(join(root, "packages", folder, path))
      ? readdirSync(join(root, "packages", folder, path), { recursive: true, encoding: "utf8" })
      : []
  const ranges = read("package.json")
    .replace(/"([^"]+)": "catalog:"/g, (_, name: string) => `"${name}": "${catalog[name] ?? "?"}"`)
    .replaceAll("workspace:^", `^${String(parse(read("package.json"))["version"])}`)
  return new Map([
    ["package.json", ranges],
    ["LICENSE", ""],
    ["README.md", read("README.md")],
    ...list("bin").map((path) => [`bin/${path}`, read(`bin/${path}`)] as const),
    ...list("src").filter((path) => path.endsWith(".ts")).flatMap((path) => {
      const name = path.slice(0, -3)
      const map = JSON.stringify({ sources: [`${"../".repeat(path.split("/").length)}src/${path}`] })
      return [
        [`src/${path}`, read(`src/${path}`)] as const,
        [`dist/${name}.js`, read(`src/${path}`)] as const,
        [`dist/${name}.d.ts`, ""] as const,
        [`dist/${name}.js.map`, map] as const,
        [`dist/${name}.d.ts.map`, map] as const
      ]
    })
  ])
}

const set = (path: string, text: string) => (files: Files): Files => new Map([...files, [path, text]])
const without = (path: string) => (files: Files): Files => new Map([...files].filter(([other]) => other !== path))
const manifest = (change: (manifest: Json) => Json) => (files: Files) =>
  set("package.json", JSON.stringify(change(parse(files.get("package.json")))))(files)
const field = (name: string, change: (value: Json) => Json) =>
  manifest((all) => ({ ...all, [name]: change((all[name] ?? {}) as Json) }))

const faults: ReadonlyArray<[what: string, folder: string, change: (files: Files) => Files, ...found: Array<RegExp>]> =
  [
    ["no licence", "core", without("LICENSE"), /^LICENSE is missing/],
    ["no README", "core", without("README.md"), /^README\.md is missing/],
    ["no command", "emulator", without("bin/store-api-emulator.js"), /^bin\/store-api-emulator\.js is missing/],
    ["a test", "core", set("src/A.test.ts", ""), /^src\/A\.test\.ts should not/],
    ["a test folder", "core", set("test/all.ts", ""), /^test\/all\.ts should not/],
    ["a type test", "core", set("typetest/A.tst.ts", ""), /^typetest\/A\.tst\.ts should not/],
    ["state of the compiler", "core", set("dist/src.tsbuildinfo", ""), /tsbuildinfo should not/],
    ["secrets of a developer", "core", set(".env", "A=1"), /^\.env should not/],
    [
      "no source",
      "core",
      without("src/TokenResponse.ts"),
      ...[".js", ".js.map", ".d.ts", ".d.ts.map"].map((end) => new RegExp(`^dist/TokenResponse${end} should not`)),
      /TokenResponse\.js\.map points to/,
      /TokenResponse\.d\.ts\.map points to/
    ],
    ["no declarations", "core", without("dist/TokenSource.d.ts"), /^dist\/TokenSource\.d\.ts is missing/],
    ["no source map", "core", without("dist/TokenResponse.js.map"), /^dist\/TokenResponse\.js\.map is missing/],
    [
      "a map to elsewhere",
      "core",
      set("dist/TokenResponse.d.ts.map", `{"sources":["../../src/TokenResponse.ts"]}`),
      /^dist\/TokenResponse\.d\.ts\.map points to/
    ],
    ["output of a deleted source", "core", set("dist/Old.js", ""), /^dist\/Old\.js should not/],
    ["another licence", "core", manifest((all) => ({ ...all, license: "ISC" })), /^license is/],
    ["another Node", "core", field("engines", () => ({ node: ">=18" })), /^engines is/],
    ["no provenance", "core", field("publishConfig", ({ access }) => ({ access })), /^publishConfig is/],
    ["a script at installation", "core", field("scripts", () => ({ postinstall: "node ." })), /^scripts is/],
    ["side effects", "core", manifest((all) => ({ ...all, sideEffects: true })), /^sideEffects is/],
    ["a side effect", "core", manifest((all) => ({ ...all, sideEffects: ["./dist/index.js"] })), /^sideEffects is/],
    ["open internals", "core", field("exports", ({ "./internal/*": _, ...others }) => others), /^exports is/],
    ["an open command", "emulator", field("exports", ({ "./bin": _, ...others }) => others), /^exports is/],
    ["a library that cannot be imported", "core", field("exports", ({ ".": _, ...others }) => others), /^exports is/],
    ["the same of one with a command", "emulator", field("exports", ({ ".": _, ...others }) => others), /^exports is/],
    [
      "an application with a public module",
      "cli",
      field("exports", (all) => ({ ...all, "./flags": "./dist/flags.js" })),
      /^exports is/
    ],
    [
      "an application without a dependency",
      "cli",
      field("dependencies", ({ commander: _, ...others }) => others),
      /^commander is imported but not/
    ],
    [
      "an application with a dependency that it does not need",
      "cli",
      field("dependencies", (all) => ({ ...all, "@effect/vitest": "0.30.0" })),
      /^@effect\/vitest is declared but not imported/
    ],
    [
      "an undeclared dependency",
      "core",
      set("dist/TokenResponse.js", `import "undici"`),
      /^undici is imported but not/
    ],
    [
      "a peer that is not needed",
      "core",
      field("peerDependencies", (all) => ({ ...all, "@effect/rpc": "^0.76.2" })),
      /^@effect\/rpc is declared but not imported/
    ],
    [
      "its own Effect",
      "core",
      manifest(({ peerDependencies, ...all }) => ({ ...all, dependencies: peerDependencies })),
      /^effect must be a peer/,
      /^@effect\/platform must be a peer/
    ],
    [
      "its own Effect, in another library",
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
  it("know each package", () => {
    assert.includeMembers([...folders.values()], ["core", "platform-node", "emulator", "redis", "cli"])
  })

  it.each([...folders.values()])("hold for %s", (folder) => {
    assert.deepStrictEqual(problemsOf(packed(folder)), [])
  })

  it.each(faults)("report %s in %s, and nothing else", (_, folder, change, ...found) => {
    const problems = problemsOf(change(packed(folder)))
    assert.strictEqual(problems.length, found.length, problems.join("\n"))
    for (const pattern of found) assert.isTrue(problems.some((problem) => pattern.test(problem)), problems.join("\n"))
  })

  it("want one version", () => {
    assert.deepStrictEqual(versionProblems(["1.0.0", "1.0.0"]), [])
    assert.lengthOf(versionProblems(["1.0.0", "0.9.0"]), 1)
    assert.lengthOf(versionProblems([]), 1)
  })

  it("want major 1 for Effect 3, major 2 for Effect 4, and the same minor and patch", () => {
    assert.deepStrictEqual(lineProblems("1.4.2", "2.4.2"), [])
    for (const [effect3, effect4] of [["1.4.2", "2.4.1"], ["2.0.0", "2.0.0"], ["0.1.0", "2.1.0"], ["1.0.0", "3.0.0"]]) {
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
