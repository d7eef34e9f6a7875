import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { packages, read, sourcesOf } from "./support/repository.js"

interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly publishConfig?: { readonly provenance?: boolean }
}

const manifest = (text: string) => JSON.parse(text) as Manifest

/** What npm runs by itself when a package is installed, or made ready from git. */
const runByItself = ({ scripts = {} }: Manifest) =>
  Object.keys(scripts).filter((name) => /^(pre|post)?(install|prepare)$|^(pre|post)?(uninstall|shrinkwrap)$/.test(name))

/** Hosts in a lockfile: registries, tarballs, git. */
const hosts = (lockfile: string) => lockfile.match(/https?:\/\/|git\+|ssh:|tarball:|registry:/g) ?? []

const keepsThings = (source: string) =>
  source.match(
    /from "(node:|@effect\/platform\/(FileSystem|KeyValueStore)|@effect\/platform-node)|\b(localStorage|sessionStorage|indexedDB|process\.env|document\.cookie)\b/g
  ) ?? []

describe("supply chain", () => {
  it.each(packages)("%s runs no script when it is installed, and is published with provenance", (name) => {
    const text = manifest(read(`packages/${name}/package.json`))
    deepStrictEqual(runByItself(text), [])
    assert.isTrue(text.publishConfig?.provenance)
  })

  it("a script that is run at install would be found", () => {
    for (const name of ["install", "preinstall", "postinstall", "prepare"]) {
      deepStrictEqual(runByItself({ scripts: { [name]: "node x.js", test: "vitest" } }), [name])
    }
  })

  it("core brings no dependency of its own", () => {
    deepStrictEqual(manifest(read("packages/core/package.json")).dependencies ?? {}, {})
  })

  it("no install script of others is let run", () => {
    assert.match(read("pnpm-workspace.yaml"), /^onlyBuiltDependencies: \[\]$/m)
  })

  it("the lockfile names no registry host and no source but it, and has a checksum for each package", () => {
    const lockfile = read("pnpm-lock.yaml")
    deepStrictEqual(hosts(lockfile), [])
    const resolutions = lockfile.match(/^ {4}resolution: .*$/gm) ?? []
    assert.isAbove(resolutions.length, 100)
    deepStrictEqual(resolutions.filter((line) => !line.includes("{integrity: sha512-")), [])
  })

  it("a host in the lockfile would be found", () => {
    assert.isAbove(hosts("resolution: {integrity: sha512-x, tarball: https://registry.example/x.tgz}").length, 0)
  })
})

describe("memory only", () => {
  it("core has nothing with which to keep a token or a secret beyond the process", () => {
    const sources = sourcesOf("core")
    assert.isAbove(sources.length, 15)
    deepStrictEqual(sources.flatMap((path) => keepsThings(read(path))), [])
  })

  it("an import of a file system, a store or the environment would be found", () => {
    for (
      const source of [
        `import "x" from "node:fs"`,
        `x from "@effect/platform/KeyValueStore"`,
        `localStorage.setItem("t", t)`
      ]
    ) {
      assert.isAbove(keepsThings(source).length, 0, source)
    }
  })
})
