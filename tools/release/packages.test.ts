/** `npm run packages` finds each of the faults that it is there to find: in tarballs that are broken one by one. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { root, run, succeed } from "../repository/support/command.js"

type Json = Record<string, unknown>

interface Fault {
  readonly what: string
  readonly of?: "cli" | "core" | "emulator" | "platform-node"
  readonly change: (folder: string) => void
  /** Each of these is found, and nothing else. */
  readonly found: ReadonlyArray<RegExp>
}

const edit = (path: string, change: (text: string) => string) => (folder: string) => {
  const before = readFileSync(join(folder, path), "utf8")
  const after = change(before)
  assert.notStrictEqual(after, before, `${path} was to be broken`)
  writeFileSync(join(folder, path), after)
}

const manifest = (change: (manifest: Json) => Json) =>
  edit("package.json", (text) => JSON.stringify(change(JSON.parse(text) as Json), null, 2))

const inManifest = (field: string, change: (value: Json) => Json) =>
  manifest((all) => ({ ...all, [field]: change((all[field] ?? {}) as Json) }))

const without = (path: string) => (folder: string) => rmSync(join(folder, path))

const plus = (path: string, text: string) => (folder: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true })
  writeFileSync(join(folder, path), text)
}

const faults: ReadonlyArray<Fault> = [
  { what: "no licence", change: without("LICENSE"), found: [/LICENSE is missing/] },
  { what: "another licence", change: plus("LICENSE", "All rights reserved."), found: [/LICENSE is not that/] },
  { what: "no README", change: without("README.md"), found: [/README\.md is missing/] },
  { what: "an empty README", change: plus("README.md", "# core\n"), found: [/README\.md says nothing/] },
  {
    what: "a test",
    change: plus("src/A.test.ts", "export {}"),
    found: [/A\.test\.ts should not/, /A\.test\.\S+ is missing/]
  },
  { what: "a test folder", change: plus("test/all.ts", "export {}"), found: [/test\/all\.ts should not be/] },
  { what: "a type test", change: plus("typetest/A.tst.ts", ""), found: [/A\.tst\.ts should not be/] },
  {
    what: "state of the compiler",
    change: plus("dist/src.tsbuildinfo", "{}"),
    found: [/tsbuildinfo should not be/]
  },
  { what: "secrets of a developer", change: plus(".env", "A=1"), found: [/\.env should not be/] },
  {
    what: "no source",
    change: without("src/TokenPolicy.ts"),
    found: [/TokenPolicy\.js\.map points to/, /TokenPolicy\.d\.ts\.map points to/, /dist\/TokenPolicy has no source/]
  },
  { what: "no declaration map", change: without("dist/TokenPolicy.d.ts.map"), found: [/d\.ts\.map is missing/] },
  { what: "no source map", change: without("dist/TokenPolicy.js.map"), found: [/TokenPolicy\.js\.map is missing/] },
  {
    what: "a map to elsewhere",
    change: edit("dist/TokenPolicy.d.ts.map", (text) => text.replace("../src/", "../../src/")),
    found: [/TokenPolicy\.d\.ts\.map points to/]
  },
  {
    what: "a map that nobody is told of",
    change: edit("dist/TokenPolicy.js", (text) => text.replace(/\/\/# sourceMappingURL=.*/, "")),
    found: [/does not name its map/]
  },
  {
    what: "a left-over of an old build",
    change: plus("dist/Old.js", "export {}\n"),
    found: [/dist\/Old has no source/, /attw: UntypedResolution \.\/Old/]
  },
  {
    what: "no declarations of a module",
    change: without("dist/TokenSource.d.ts"),
    found: [/TokenSource\.d\.ts is missing/, /attw: UntypedResolution \.\/TokenSource/]
  },
  {
    what: "an import without its ending",
    change: edit("dist/TokenSource.d.ts", (text) => text.replace("./AccessToken.js", "./AccessToken")),
    found: [/attw: InternalResolutionError/]
  },
  {
    what: "CommonJS",
    change: manifest(({ type: _, ...others }) => others),
    found: [/type is undefined/, /attw: /, /publint: /]
  },
  {
    what: "types after the code",
    change: inManifest("exports", (exports) => {
      const { default: code, types } = exports["."] as Json
      return { ...exports, ".": { default: code, types } }
    }),
    found: [/exports is/, /publint: /]
  },
  {
    what: "open internals",
    change: inManifest("exports", ({ "./internal/*": _, ...others }) => others),
    found: [/exports opens \.\/internal/]
  },
  {
    what: "an open command",
    of: "emulator",
    change: inManifest("exports", ({ "./bin": _, ...others }) => others),
    found: [/exports opens \.\/bin/]
  },
  {
    what: "a library without a door",
    change: inManifest("exports", ({ ".": _, ...others }) => others),
    found: [/exports is/]
  },
  {
    what: "a library with a command, without a door",
    of: "emulator",
    change: inManifest("exports", ({ ".": _, ...others }) => others),
    found: [/exports is/]
  },
  {
    what: "an application with a module for others",
    of: "cli",
    change: inManifest("exports", (exports) => ({ ...exports, "./flags": "./dist/flags.js" })),
    found: [/exports is/]
  },
  {
    what: "an application that brings something for a dependency that it has no more",
    of: "cli",
    change: inManifest("dependencies", ({ "@effect/cli": _, ...others }) => others),
    found: [
      /@effect\/cli is imported but not declared/,
      /@effect\/printer is declared but not imported/,
      /@effect\/printer-ansi is declared but not imported/
    ]
  },
  {
    what: "an application that brings what nobody needs",
    of: "cli",
    change: inManifest("dependencies", (all) => ({ ...all, "@effect/vitest": "0.30.0" })),
    found: [/@effect\/vitest is declared but not imported/]
  },
  {
    what: "no command",
    of: "emulator",
    change: without("bin/store-api-emulator.js"),
    found: [/store-api-emulator is missing/, /publint: /]
  },
  {
    what: "a command without Node",
    of: "emulator",
    change: edit("bin/store-api-emulator.js", (text) => text.replace(/^#!.*\n/, "")),
    found: [/does not say that Node runs it/, /publint: /]
  },
  {
    what: "side effects",
    change: manifest((all) => ({ ...all, sideEffects: true })),
    found: [/sideEffects is no list/]
  },
  {
    what: "a side effect",
    change: manifest((all) => ({ ...all, sideEffects: ["./dist/index.js"] })),
    found: [/sideEffects names/]
  },
  {
    what: "another Node",
    change: manifest((all) => ({ ...all, engines: { node: ">=18" } })),
    found: [/engines is/]
  },
  {
    what: "no provenance",
    change: inManifest("publishConfig", ({ access }) => ({ access })),
    found: [/publishConfig is/]
  },
  {
    what: "something to be run at install",
    change: manifest((all) => ({ ...all, scripts: { postinstall: "node ." } })),
    found: [/there are scripts/]
  },
  {
    what: "a range of this workspace",
    of: "platform-node",
    change: inManifest("dependencies", (all) => ({ ...all, "@store-api/core": "workspace:^" })),
    found: [/the range of @store-api\/core/, /dependencies has @store-api\/core by workspace/]
  },
  {
    what: "a range of the catalog",
    change: inManifest("devDependencies", (all) => ({ ...all, effect: "catalog:" })),
    found: [/devDependencies has effect by catalog/]
  },
  {
    what: "another range than is tested",
    change: inManifest("peerDependencies", (all) => ({ ...all, effect: "^3.0.0" })),
    found: [/the range of effect is/]
  },
  {
    what: "Effect of its own",
    change: manifest(({ peerDependencies, ...all }) => ({ ...all, dependencies: peerDependencies })),
    found: [/effect must be a peer/, /platform must be a peer/]
  },
  {
    what: "a dependency that is not declared",
    change: edit("dist/TokenPolicy.js", (text) => `import "undici"\n${text}`),
    found: [/undici is imported but not declared/]
  },
  {
    what: "a peer that nothing needs",
    change: inManifest("peerDependencies", (all) => ({ ...all, "@effect/rpc": "^0.76.2" })),
    found: [/rpc is declared but not imported/]
  },
  {
    what: "a repository that nobody has set for a release",
    change: manifest((all) => ({ ...all, repository: "github:owner/name" })),
    found: [/repository is set outside/]
  }
]

const work = mkdtempSync(join(tmpdir(), "packaging-"))
afterAll(() => rmSync(work, { recursive: true }), 120_000)

const command = (...args: ReadonlyArray<string>) => run(process.execPath, ["tools/release/pack.mjs", ...args])
/** Those that publint or attw should find. */
const forOthers = ({ found }: Fault) => found.some(({ source }) => /attw|publint/.test(source))
const tarball = (index: number) => `fault-${index}.tgz`

/** What was found in each of the given tarballs. */
const problems = (stdout: string, name: string) =>
  stdout.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2))

const pack = async (folder: string, name: string) => {
  await succeed("tar", ["-czf", join(work, name), "-C", folder, "package"])
  return join(work, name)
}

/** A copy of a tarball's content, changed. */
const broken = (unpacked: string, { change, of = "core" }: Pick<Fault, "change" | "of">, name: string) => {
  const folder = join(work, name)
  cpSync(join(unpacked, of), folder, { recursive: true })
  change(join(folder, "package"))
  return folder
}

describe("npm run packages", { timeout: 300_000 }, () => {
  const good = join(work, "good")
  const unpacked = join(work, "unpacked")

  beforeAll(async () => {
    const { status, stdout } = await command("--out", good)
    assert.strictEqual(status, 0, stdout)
    for (const file of readdirSync(good)) {
      const folder = join(unpacked, /^store-api-(.*)-\d+\.\d+\.\d+/.exec(file)?.[1] ?? file)
      mkdirSync(folder, { recursive: true })
      await succeed("tar", ["-xzf", join(good, file), "-C", folder])
    }
  }, 300_000)

  it("packs every package that is not private", () => {
    const published = readdirSync(join(root, "packages")).filter((name) => {
      const { private: hidden } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as Json
      return hidden !== true
    })
    assert.deepStrictEqual(readdirSync(unpacked).sort(), published.sort())
    assert.includeMembers(published, ["core", "platform-node", "emulator", "cli"])
  })

  it.each([
    { by: "our rules", options: ["--own-rules"], chosen: faults.filter((fault) => !forOthers(fault)) },
    { by: "publint, attw and our rules", options: [], chosen: faults.filter(forOthers) }
  ])("finds each fault by $by, and nothing besides", async ({ chosen, options }) => {
    assert.isAbove(chosen.length, 5)
    const tarballs: Array<string> = []
    for (const fault of chosen) {
      const index = faults.indexOf(fault)
      tarballs.push(await pack(broken(unpacked, fault, `fault-${index}`), tarball(index)))
    }
    const { status, stderr, stdout } = await command(...options, ...tarballs)
    assert.strictEqual(status, 1, stderr)
    assert.notMatch(stderr, /Error/)
    for (const { found, what } of chosen) {
      const lines = problems(stdout, tarball(faults.findIndex((fault) => fault.what === what)))
      for (const pattern of found) {
        assert.isTrue(lines.some((line) => pattern.test(line)), `${what}: ${String(pattern)} in\n${lines.join("\n")}`)
      }
      const others = lines.filter((line) => !found.some((pattern) => pattern.test(line)))
      assert.deepStrictEqual(others, [], what)
    }
  })

  it("wants the packages to be of one version", async () => {
    const older = broken(unpacked, { change: manifest((all) => ({ ...all, version: "0.0.9" })) }, "older")
    const emulator = readdirSync(good).find((name) => name.includes("emulator")) ?? ""
    const { status, stdout } = await command("--own-rules", await pack(older, "older.tgz"), join(good, emulator))
    assert.strictEqual(status, 1)
    assert.include(stdout, "of different versions")
    assert.deepStrictEqual(problems(stdout, "older.tgz"), [])
  })

  it("wants each package of a release to name the repository it comes from", async () => {
    const repository = { type: "git", url: "git+https://github.com/owner/name.git", directory: "packages/core" }
    const named = broken(unpacked, { change: manifest((all) => ({ ...all, repository })) }, "named")
    await pack(named, "named.tgz")
    const right = await command("--own-rules", "--repository", "owner/name", join(work, "named.tgz"))
    assert.strictEqual(right.status, 0, right.stdout)
    const other = await command("--own-rules", "--repository", "owner/fork", join(work, "named.tgz"))
    assert.match(other.stdout, /named\.tgz: repository is .*owner\/name.* not .*owner\/fork/)
    const core = readdirSync(good).find((name) => name.includes("core")) ?? ""
    const none = await command("--own-rules", "--repository", "owner/name", join(good, core))
    assert.match(none.stdout, /repository is undefined/)
    assert.deepStrictEqual([other.status, none.status], [1, 1])
  })
})
