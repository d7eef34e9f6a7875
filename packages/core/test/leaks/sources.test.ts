/** What the files of the repository must have and must not have. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"

const root = fileURLToPath(new URL("../../../../", import.meta.url))

const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The paths of the sources of a package, relative to the root. */
const sourcesOf = (name: string): ReadonlyArray<string> =>
  readdirSync(join(root, "packages", name, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

/** The published packages. */
const packages = readdirSync(join(root, "packages")).filter((name) =>
  existsSync(join(root, "packages", name, "src"))
)

interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly publishConfig?: { readonly provenance?: boolean }
}

/** Scripts that npm runs automatically when a package is installed or prepared from git. */
const automaticScripts = ({ scripts = {} }: Manifest) =>
  Object.keys(scripts).filter((name) =>
    /^(pre|post)?(install|prepare)$|^(pre|post)?(uninstall|shrinkwrap)$/.test(name)
  )

/** References to registries, tarballs and git hosts in a lockfile. */
const hosts = (lockfile: string) =>
  lockfile.match(/https?:\/\/|git\+|ssh:|tarball:|registry:/g) ?? []

/** Uses of APIs that can keep a value beyond the process. */
const persistenceUses = (source: string) =>
  source.match(
    /from "(node:(?!test")|@effect\/platform\/(FileSystem|KeyValueStore)|@effect\/platform-node)|\b(localStorage|sessionStorage|indexedDB|process\.env|document\.cookie)\b/g
  ) ?? []

const manifestOf = (name: string) =>
  JSON.parse(read(`packages/${name}/package.json`)) as Manifest

describe("supply chain", () => {
  it.each(packages)("%s runs no script when it is installed", (name) => {
    deepStrictEqual(automaticScripts(manifestOf(name)), [])
  })

  it.each(["install", "preinstall", "postinstall", "prepare"])(
    "control: a script %s would run when a package is installed",
    (script) => {
      const scripts = { [script]: "node x.js", test: "vitest" }
      deepStrictEqual(automaticScripts({ scripts }), [script])
    }
  )

  it.each(packages)("%s is published with provenance", (name) => {
    assert.isTrue(manifestOf(name).publishConfig?.provenance)
  })

  it("core has no dependencies", () => {
    deepStrictEqual(manifestOf("core").dependencies ?? {}, {})
  })

  it("no install script of a dependency may run", () => {
    assert.match(read("pnpm-workspace.yaml"), /^onlyBuiltDependencies: \[\]$/m)
  })

  it("the lockfile has a checksum for each package", () => {
    const resolutions = read("pnpm-lock.yaml").match(/^ {4}resolution: .*$/gm) ?? []
    assert.isAbove(resolutions.length, 100)
    deepStrictEqual(resolutions.filter((line) => !line.includes("{integrity: sha512-")), [])
  })

  it("the lockfile has no other source than the registry", () => {
    const lockfile = read("pnpm-lock.yaml")
    deepStrictEqual(hosts(lockfile), [])
    assert.isNotEmpty(
      hosts("{integrity: sha512-x, tarball: https://registry.example/x.tgz}"),
      "control"
    )
  })
})

describe("memory only", () => {
  it("core uses no API that can keep a token or a secret beyond the process", () => {
    const sources = sourcesOf("core")
    assert.isAbove(sources.length, 15)
    deepStrictEqual(sources.flatMap((path) => persistenceUses(read(path))), [])
    for (
      const use of [
        `import "x" from "node:fs"`,
        `from "@effect/platform/KeyValueStore"`,
        `localStorage.setItem`
      ]
    ) {
      assert.isNotEmpty(persistenceUses(use), "control")
    }
  })
})

/**
 * The files that may read redacted values, and how often. They build a body, a header or a connection, search a
 * response for an echo, seal a token with a key derived from the secret, or print a token or the demo secret.
 */
const allowed: Readonly<Record<string, number>> = {
  "packages/cli/src/commands/check/assertion.ts": 1,
  "packages/cli/src/commands/check/responses.ts": 1,
  "packages/cli/src/commands/emulator/start.ts": 1,
  "packages/cli/src/commands/profile/add.ts": 1,
  "packages/cli/src/commands/run/run.ts": 1,
  "packages/cli/src/commands/token/token.ts": 1,
  "packages/core/src/AccessToken.ts": 1,
  "packages/core/src/SharedTokenSource.ts": 3,
  "packages/core/src/internal/client/attempt.ts": 1,
  "packages/core/src/internal/credentials.ts": 1,
  "packages/core/src/internal/endpoint/failure.ts": 2,
  "packages/core/src/internal/endpoint/sentRequest.ts": 1,
  "packages/core/src/internal/sharing/seal.ts": 2,
  "packages/core/src/internal/sharing/storedToken.ts": 1,
  "packages/core/src/TokenRequest.ts": 4,
  "packages/dpop/src/Dpop.ts": 1,
  "packages/dpop/src/internal/signingKey.ts": 1,
  "packages/platform-node/src/internal/tls.ts": 1,
  "packages/redis/src/internal/connection.ts": 1
}

/** Counts the uses of `Redacted.value`, under any imported name, without those in comments. */
const countUses = (source: string): number => {
  const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
  const names = [
    ...code.matchAll(/import\s+(?:type\s+)?\*\s+as\s+(\w+)\s+from\s+"effect\/Redacted"/g)
  ].map((
    [, name]
  ) => name)
  const modules = [...names, "Redacted"].join("|")
  const unwrapping = [
    new RegExp(`\\b(?:${modules})\\s*(?:\\.\\s*|\\?\\.\\s*)value\\b`, "g"),
    new RegExp(`\\b(?:${modules})\\s*\\[`, "g"),
    /import\s*\{[^}]*\bvalue\b[^}]*\}\s*from\s*"effect\/Redacted"/g,
    /\{[^}]*\bvalue\b[^}]*\}\s*=\s*Redacted\b/g,
    /redactedRegistry/g,
    // Schema.Redacted encodes to the value itself.
    /\bSchema\.Redacted\([^]*\bSchema\.encode|Schema\.encode[^]*\bSchema\.Redacted\(/g
  ]
  return unwrapping.reduce((sum, pattern) => sum + (code.match(pattern) ?? []).length, 0)
}

describe("a redacted value", () => {
  it("is read only to build a header, body or connection, find an echo, seal or print a token, or date an assertion (CWE-522)", () => {
    const found = ["cli", "core", "dpop", "platform-node", "redis", "sql"].flatMap((name) =>
      sourcesOf(name).map((path) => [path, countUses(read(path))] as const).filter((
        [, count]
      ) => count > 0)
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
  ])("control: another use is found: %j", (source) => {
    assert.isAbove(countUses(source), 0)
  })

  it.each([
    `// Redacted.value(secret)`,
    `/** only \`Redacted.value\` shows it */`,
    `Redacted.make(secret)`,
    `token.value`
  ])("control: code that reads no value is not counted: %j", (source) => {
    assert.strictEqual(countUses(source), 0)
  })
})

// A test in tools/docs checks that the named tests exist.
describe("docs/evidence/standards.md", () => {
  const items = read("docs/evidence/standards.md").split(/^\| (?=\d+ \|)/m).slice(1)

  it("has thirty rows, numbered in order", () => {
    deepStrictEqual(
      items.map((item) => Number.parseInt(item)),
      Array.from({ length: 30 }, (_, index) => index + 1)
    )
  })

  it("names a test in each row", () => {
    for (const item of items) assert.match(item, /“[^”]+”\s+in\s+`[^`]+`/)
  })
})

describe("the security model and policy", () => {
  it("names the limitations, such as the stronger authentication methods that this API lacks", () => {
    const page = read("docs/explanation/security-model.md")
    const terms = [
      "follows redirects",
      "memory",
      "RequestInit",
      "Redacted.value",
      "mTLS",
      "transformClient"
    ]
    for (const term of [...terms, "private_key_jwt"]) assert.include(page, term)
  })

  it("says where to report a vulnerability, without an email address", () => {
    const page = read("SECURITY.md")
    assert.match(page, /security advisor/i)
    assert.notMatch(page, /@[a-z]+\.[a-z]/)
  })
})
