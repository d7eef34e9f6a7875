import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"

const tree = mkdtempSync(join(tmpdir(), "typetest-"))
afterAll(() => rmSync(tree, { recursive: true }))

/** Type tests that must fail, and the change of a built declaration that they must find. */
const changes = [
  ["AccessToken", "Effect.Effect<AccessToken, TokenExpiredError>", "Effect.Effect<AccessToken>"],
  ["AccessTokenProvider", "Effect.Effect<Service, never, TokenSource | Scope.Scope>", "Effect.Effect<Service>"],
  [
    "TokenEndpoint.Options",
    "readonly deadline?: Duration.DurationInput",
    "readonly deadline?: Duration.DurationInput | string"
  ],
  [
    "ClientCredentials.Options",
    "readonly clientSecret: Redacted.Redacted",
    "readonly clientSecret: Redacted.Redacted | string"
  ]
] as const

describe("npm run typetest", { timeout: 120_000 }, () => {
  it("fails when an error, a requirement or the type of an option changes", async () => {
    const core = join(tree, "packages", "core")
    for (const path of ["package.json", "typetest", "dist"]) {
      cpSync(join(root, "packages", "core", path), join(core, path), { recursive: true })
    }
    for (const path of ["tsconfig.base.json", "tools/typetest/tstyche.json"]) cpSync(join(root, path), join(tree, path))
    for (const path of ["node_modules", "packages/core/node_modules"]) symlinkSync(join(root, path), join(tree, path))
    for (const [test, from, to] of changes) {
      const path = join(core, "dist", `${test.replace(".Options", "")}.d.ts`)
      const text = readFileSync(path, "utf8")
      assert.include(text, from)
      writeFileSync(path, text.replace(from, to))
    }
    const tstyche = join(root, "node_modules", "tstyche", "build", "bin.js")
    const args = [tstyche, "options", "signatures", "--config", join(tree, "tools", "typetest", "tstyche.json")]
    const { status, stderr, stdout } = await run(process.execPath, args, {
      cwd: tree,
      env: {
        NO_COLOR: "1",
        TSTYCHE_NPM_REGISTRY: "http://127.0.0.1:9",
        TSTYCHE_TYPESCRIPT_MODULE: new URL("../../node_modules/typescript/lib/typescript.js", import.meta.url).href
      }
    })
    assert.strictEqual(status, 1, stdout + stderr)
    assert.includeMembers(
      [...stderr.matchAll(/ at .* ❭ (.*)$/gm)].map(([, name]) => name),
      changes.map(([test]) => test)
    )
    assert.include(stderr, "is not the same as type")
  })
})
