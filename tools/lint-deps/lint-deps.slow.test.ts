/** Each rule on imports finds an import that breaks it. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, it } from "vitest"
import { root, run } from "../repository/support/command.js"

const core = "packages/core/src"

/** A rule, a module, and an import in it that breaks the rule. */
const offences = [
  ["layer-1-imports-from-below", `${core}/AccessTokenMetrics.ts`, `import type {} from "./StoreAuth.js"`],
  ["layer-2-imports-from-below", `${core}/AccessToken.ts`, `import "./TokenSource.js"`],
  ["layer-3-imports-from-below", `${core}/TokenSource.ts`, `import "./TokenEndpoint.js"`],
  ["layer-4-imports-from-below", `${core}/TokenEndpoint.ts`, `export * from "./AuthorizedHttpClient.js"`],
  ["layer-5-imports-from-below", `${core}/AuthorizedHttpClient.ts`, `export const a = () => import("./StoreAuth.js")`],
  ["layer-6-imports-from-below", `${core}/StoreAuth.ts`, `import "./index.js"`],
  ["no-circular", `${core}/AccessTokenError.ts`, `import type {} from "./TokenSource.js"`],
  ["every-module-has-a-layer", `${core}/internal/unlisted.ts`, `import "./sanitise.js"`],
  ["internals-of-provider", `${core}/TokenEndpoint.ts`, `import "./internal/provider/heldToken.js"`],
  ["internals-of-endpoint", `${core}/internal/provider/tokenState.ts`, `import "../endpoint/refusal.js"`],
  ["internals-of-client", `${core}/SharedTokenSource.ts`, `import "./internal/client/headerValue.js"`],
  ["internals-of-sharing", `${core}/internal/boundedBody.ts`, `import "./sharing/seal.js"`],
  ["core-imports-no-node", `${core}/AccessTokenProvider.ts`, `import "node:fs"`],
  ["core-imports-two-peers", `${core}/TokenResponse.ts`, `import "@effect/platform-node/NodeHttpClient"`],
  ["core-imports-from-below", `${core}/internal/manualRedirect.ts`, `import "@store-api/platform-node"`],
  ["emulator-imports-from-below", "packages/emulator/src/Client.ts", `import "@store-api/core"`],
  ["platform-node-imports-from-below", "packages/platform-node/src/NodeStoreAuth.ts", `import "@store-api/emulator"`],
  ["redis-imports-from-below", "packages/redis/src/RedisTokenStore.ts", `import "@store-api/platform-node"`],
  ["cli-imports-from-below", "packages/cli/src/tokens.ts", `import "@store-api/redis"`],
  ["other-packages-by-name", "packages/cli/src/time.ts", `import "../../core/src/index.js"`],
  ["other-packages-without-internals", "packages/redis/src/index.ts", `import "@store-api/core/internal/sharing/seal"`],
  ["sources-import-no-tests", "packages/emulator/src/Fault.ts", `import "../test/utils.js"`],
  ["packages-and-examples-import-no-tools", "packages/redis/src/index.ts", `import "../../../tools/workspace/run.mjs"`],
  ["packages-and-examples-import-no-tools", "examples/src/shop.ts", `import "../../tools/release/pack.mjs"`]
] as const

/** Modules with these imports. The modules that they name are empty, except for an index that closes a circle. */
const withOffences = () => {
  const tree = mkdtempSync(join(tmpdir(), "lint-deps-"))
  for (const path of ["tools/lint-deps", "tsconfig.base.json"]) {
    cpSync(join(root, path), join(tree, path), { recursive: true })
  }
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text, { flag: "a" })
  }
  write(`${core}/index.ts`, `import "./AccessTokenError.js"\n`)
  write(`${core}/internal/sharing/seal.ts`, "")
  for (const name of ["platform-node", "emulator", "cli", "redis"]) write(`packages/${name}/src/index.ts`, "")
  for (const [, module, line] of offences) {
    write(module, `${line}\n`)
    const [, imported] = /"(\..*)"/.exec(line) ?? []
    if (imported !== undefined) write(join(dirname(module), imported.replace(/[.]js$/, ".ts")), "")
  }
  return tree
}

it("each rule on imports is broken by an import", { timeout: 120_000 }, async () => {
  const require = createRequire(import.meta.url)
  const { scripts } = require("../../package.json") as { readonly scripts: { readonly "lint:deps": string } }
  const { forbidden } = require("./dependency-cruiser.cjs") as { readonly forbidden: ReadonlyArray<{ name: string }> }
  const tree = withOffences()
  const [, args = ""] = scripts["lint:deps"].split(" depcruise ")
  const { status, stdout } = await run(join(root, "node_modules/.bin/depcruise"), args.split(" "), { cwd: tree })
  rmSync(tree, { recursive: true })
  const missed = offences.filter(([rule, module]) => !stdout.includes(`error ${rule}: ${module}`))
  assert.deepStrictEqual(missed, [], stdout)
  assert.isAbove(status ?? 0, 0)
  // `index` is the top layer.
  const rules = forbidden.map(({ name }) => name).filter((name) => name !== "layer-7-imports-from-below")
  assert.sameMembers(rules, [...new Set(offences.map(([rule]) => rule))])
})
