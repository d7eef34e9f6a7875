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

/**
 * Where what is hidden may be read: where a body, a header or a connection is made, where an echo is looked for, where a
 * token is sealed, with a key that comes from the secret, and where the command line prints what it was asked for: a token,
 * or the secret of the emulator's demo client.
 */
const allowed: Readonly<Record<string, number>> = {
  "packages/cli/src/check/answers.ts": 1,
  "packages/cli/src/commands/token.ts": 1,
  "packages/core/src/AccessToken.ts": 1,
  "packages/core/src/ClientCredentials.ts": 1,
  "packages/core/src/internal/headerValue.ts": 1,
  "packages/core/src/internal/sanitise.ts": 1,
  "packages/core/src/internal/seal.ts": 1,
  "packages/core/src/internal/storedToken.ts": 1,
  "packages/core/src/internal/tokenRequest.ts": 2,
  "packages/platform-node/src/internal/tls.ts": 1,
  "packages/redis/src/internal/connection.ts": 1
}

/** Uses of `Redacted.value`, under whatever name the module or the function was imported; comments do not count. */
const uses = (source: string): number => {
  const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
  const names = [...code.matchAll(/import\s+(?:type\s+)?\*\s+as\s+(\w+)\s+from\s+"effect\/Redacted"/g)].map((
    [, name]
  ) => name)
  const modules = [...names, "Redacted"].join("|")
  const unwrapping = [
    new RegExp(`\\b(?:${modules})\\s*(?:\\.\\s*|\\?\\.\\s*)value\\b`, "g"),
    new RegExp(`\\b(?:${modules})\\s*\\[`, "g"),
    /import\s*\{[^}]*\bvalue\b[^}]*\}\s*from\s*"effect\/Redacted"/g,
    /\{[^}]*\bvalue\b[^}]*\}\s*=\s*Redacted\b/g,
    /redactedRegistry/g,
    // Its encoding is the value itself.
    /\bSchema\.Redacted\([^]*\bSchema\.encode|Schema\.encode[^]*\bSchema\.Redacted\(/g
  ]
  return unwrapping.reduce((sum, pattern) => sum + (code.match(pattern) ?? []).length, 0)
}

describe("what is redacted", () => {
  it("is read only where a header, a body or a connection is made, an echo looked for, a token sealed or asked for (CWE-522)", () => {
    const found = ["cli", "core", "platform-node", "redis"].flatMap((name) =>
      sourcesOf(name).map((path) => [path, uses(read(path))] as const).filter(([, count]) => count > 0)
    )
    deepStrictEqual(Object.fromEntries(found), allowed)
  })

  it.each([
    `Redacted.value(secret)`,
    `secrets.map(Redacted.value)`,
    `Redacted\n  .value(secret)`,
    `import * as R from "effect/Redacted"\nR.value(secret)`,
    `import { value as open } from "effect/Redacted"`,
    `const { value } = Redacted`,
    `Redacted["value"](secret)`,
    `const Stored = Schema.Struct({\n  value: Schema.Redacted(Schema.String)\n})\nSchema.encodeSync(Stored)`
  ])("a further place would be found: %j", (source) => {
    assert.isAbove(uses(source), 0)
  })

  it.each([
    `// Redacted.value(secret)`,
    `/** only \`Redacted.value\` shows it */`,
    `Redacted.make(secret)`,
    `token.value`
  ])(
    "what reads nothing is not taken for one: %j",
    (source) => {
      assert.strictEqual(uses(source), 0)
    }
  )
})
