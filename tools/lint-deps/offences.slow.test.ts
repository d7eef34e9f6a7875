import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"

const { scripts } = createRequire(import.meta.url)("../../package.json") as {
  readonly scripts: { readonly "lint:deps": string }
}
const { forbidden } = createRequire(import.meta.url)("./dependency-cruiser.cjs") as {
  readonly forbidden: ReadonlyArray<{ readonly name: string }>
}

const core = "packages/core/src"

/** A rule, a module, and an import in it that breaks the rule. A module that does not exist is created. */
const offences = [
  ["layer-1-imports-from-below", `${core}/TokenPolicy.ts`, `import type {} from "./StoreAuth.js"`],
  ["layer-2-imports-from-below", `${core}/AccessToken.ts`, `import "./TokenSource.js"`],
  ["layer-3-imports-from-below", `${core}/TokenSource.ts`, `import "./TokenEndpoint.js"`],
  ["layer-4-imports-from-below", `${core}/TokenEndpoint.ts`, `export * from "./AuthorizedHttpClient.js"`],
  [
    "layer-5-imports-from-below",
    `${core}/AuthorizedHttpClient.ts`,
    `export const later = () => import("./StoreAuth.js")`
  ],
  ["layer-6-imports-from-below", `${core}/StoreAuth.ts`, `import "./index.js"`],
  ["no-circular", `${core}/AccessTokenError.ts`, `import type {} from "./TokenSource.js"`],
  ["every-module-has-a-layer", `${core}/internal/unlisted.ts`, `import "./sanitise.js"`],
  ["core-imports-no-node", `${core}/AccessTokenProvider.ts`, `import "node:fs"`],
  ["core-imports-no-node", `${core}/internal/sanitise.ts`, `import "crypto"`],
  ["core-imports-two-peers", `${core}/TokenResponse.ts`, `import "@effect/platform-node/NodeHttpClient"`],
  ["core-imports-two-peers", `${core}/internal/baseUrl.ts`, `import "@store-api/emulator"`],
  ["core-imports-from-below", `${core}/internal/challenge.ts`, `import "@store-api/platform-node"`],
  ["emulator-imports-from-below", "packages/emulator/src/Client.ts", `import "@store-api/core"`],
  ["emulator-imports-from-below", "packages/emulator/src/Emulator.ts", `import "../../core/src/index.js"`],
  ["platform-node-imports-from-below", "packages/platform-node/src/NodeStoreAuth.ts", `import "@store-api/emulator"`],
  ["platform-node-imports-from-below", "packages/platform-node/src/FileTokenStore.ts", `import "@store-api/cli"`],
  ["redis-imports-from-below", "packages/redis/src/RedisTokenStore.ts", `import "@store-api/platform-node"`],
  ["redis-imports-from-below", "packages/redis/src/index.ts", `import "../../cli/src/flags.js"`],
  ["cli-imports-from-below", "packages/cli/src/tokens.ts", `import "@store-api/redis"`],
  ["other-packages-by-name", "packages/platform-node/src/index.ts", `import "../../core/src/index.js"`],
  ["other-packages-by-name", "packages/cli/src/time.ts", `import "../../core/src/index.js"`],
  ["other-packages-without-internals", "packages/redis/src/index.ts", `import "@store-api/core/internal/seal"`],
  ["sources-import-no-tests", "packages/emulator/src/Fault.ts", `import "../test/utils.js"`],
  ["packages-and-examples-import-no-tools", "packages/redis/src/index.ts", `import "../../../tools/workspace/run.mjs"`],
  [
    "packages-and-examples-import-no-tools",
    "packages/core/test/new.test.ts",
    `import "../../../tools/release/pack.mjs"`
  ],
  ["packages-and-examples-import-no-tools", "examples/src/shop.ts", `import "../../tools/release/pack.mjs"`]
] as const

const tree = mkdtempSync(join(tmpdir(), "lint-deps-"))
afterAll(() => rmSync(tree, { recursive: true }))

/** Copies what the rules depend on, and links what is installed. */
const copy = () => {
  for (const path of ["tools/lint-deps", "tools/release/pack.mjs", "tools/workspace/run.mjs", "package.json"]) {
    cpSync(join(root, path), join(tree, path), { recursive: true })
  }
  const members = readdirSync(join(root, "packages")).map((name) => `packages/${name}`)
  for (const folder of [...members.filter((member) => existsSync(join(root, member, "src"))), "examples"]) {
    for (const path of ["package.json", "src", "test"]) {
      cpSync(join(root, folder, path), join(tree, folder, path), { recursive: true })
    }
    symlinkSync(join(root, folder, "node_modules"), join(tree, folder, "node_modules"))
  }
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
}

describe("npm run lint:deps", { timeout: 120_000 }, () => {
  it("finds an import that breaks a rule, for each rule", async () => {
    copy()
    for (const [, module, line] of offences) {
      const path = join(tree, module)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, `${line}\n${existsSync(path) ? readFileSync(path, "utf8") : ""}`)
    }
    const [, ownArgs = ""] = scripts["lint:deps"].split(" depcruise ")
    const cli = join(root, "node_modules", "dependency-cruiser", "bin", "dependency-cruise.mjs")
    const { status, stderr, stdout } = await run(process.execPath, [cli, ...ownArgs.split(" ")], { cwd: tree })
    assert.notStrictEqual(status, 0, stderr)
    const found = [...stdout.matchAll(/error ([\w-]+): (\S+)/g)].map(([, rule, module]) => `${rule} ${module}`)
    const missed = offences.map(([rule, module]) => `${rule} ${module}`).filter((offence) => !found.includes(offence))
    assert.deepStrictEqual(missed, [])
  })

  it("has an offence here for each rule", () => {
    // No module is above `index`.
    const rules = forbidden.map(({ name }) => name).filter((name) => name !== "layer-7-imports-from-below")
    assert.sameMembers(rules, [...new Set(offences.map(([rule]) => rule))])
  })
})
