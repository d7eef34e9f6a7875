/** Each rule on imports finds an import that breaks it: a pattern that matches nothing would fail silently. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, it } from "vitest"
import { root, run } from "../repository/support/command.js"

/** Rules, each with a module below `packages` and what it imports against the rule. */
const offences = `
layer-1-imports-from-below core/src/AccessTokenMetrics ./StoreAuth.js
layer-2-imports-from-below core/src/AccessToken ./TokenSource.js
layer-3-imports-from-below core/src/TokenSource ./TokenEndpoint.js
layer-4-imports-from-below core/src/TokenEndpoint ./AuthorizedHttpClient.js
layer-5-imports-from-below core/src/AuthorizedHttpClient ./StoreAuth.js
layer-6-imports-from-below core/src/StoreAuth ./index.js
no-circular core/src/AccessTokenError ./TokenSource.js
every-module-has-a-layer core/src/internal/unlisted ./sanitise.js
internals-of-provider core/src/TokenEndpoint ./internal/provider/heldToken.js
internals-of-endpoint core/src/internal/provider/tokenState ../endpoint/refusal.js
internals-of-client core/src/SharedTokenSource ./internal/client/headerValue.js
internals-of-sharing core/src/internal/boundedBody ./sharing/seal.js
core-imports-no-node core/src/AccessTokenProvider node:fs
core-imports-two-peers core/src/TokenResponse @effect/platform-node/NodeHttpClient
core-imports-from-below core/src/internal/manualRedirect @store-api/platform-node
emulator-imports-from-below emulator/src/Client @store-api/core
platform-node-imports-from-below platform-node/src/NodeStoreAuth @store-api/emulator
redis-imports-from-below redis/src/RedisTokenStore @store-api/platform-node
cli-imports-from-below cli/src/tokens @store-api/redis
other-packages-by-name cli/src/time ../../core/src/index.js
other-packages-without-internals redis/src/index @store-api/core/internal/sharing/seal
sources-import-no-tests emulator/src/Fault ../test/utils.js
packages-and-examples-import-no-tools redis/src/index ../../../tools/workspace/run.mjs
packages-and-examples-import-no-tools ../examples/src/shop ../../tools/release/pack.mjs
`.trim().split("\n").map((line) => line.split(" ") as [rule: string, module: string, imported: string])

it("each rule on imports is broken by an import", { timeout: 120_000 }, async () => {
  const require = createRequire(import.meta.url)
  const { scripts } = require("../../package.json") as { readonly scripts: { readonly "lint:deps": string } }
  const { forbidden } = require("./dependency-cruiser.cjs") as { readonly forbidden: ReadonlyArray<{ name: string }> }
  const tree = mkdtempSync(join(tmpdir(), "lint-deps-"))
  for (const path of ["tools/lint-deps", "tsconfig.base.json"]) {
    cpSync(join(root, path), join(tree, path), { recursive: true })
  }
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text, { flag: "a" })
  }
  // The imported modules are empty, except for an index that closes a circle.
  write("packages/core/src/index.ts", `import "./AccessTokenError.js"\n`)
  write("packages/core/src/internal/sharing/seal.ts", "")
  for (const name of ["platform-node", "emulator", "cli", "redis"]) write(`packages/${name}/src/index.ts`, "")
  for (const [, module, imported] of offences) {
    const path = join("packages", `${module}.ts`)
    write(path, `import "${imported}"\n`)
    if (imported.startsWith(".")) write(join(dirname(path), imported.replace(/[.]js$/, ".ts")), "")
  }
  const [, args = ""] = scripts["lint:deps"].split(" depcruise ")
  const { status, stdout } = await run(join(root, "node_modules/.bin/depcruise"), args.split(" "), { cwd: tree })
  rmSync(tree, { recursive: true })
  const missed = offences.filter(([rule, module]) => !stdout.includes(`error ${rule}: ${join("packages", module)}.ts`))
  assert.deepStrictEqual(missed, [], stdout)
  assert.isAbove(status ?? 0, 0)
  // `index` is the top layer.
  const rules = forbidden.map(({ name }) => name).filter((name) => name !== "layer-7-imports-from-below")
  assert.sameMembers(rules, [...new Set(offences.map(([rule]) => rule))])
})
