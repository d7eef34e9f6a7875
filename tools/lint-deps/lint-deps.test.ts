import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { cruise, type ICruiseResult } from "dependency-cruiser"
import extractTSConfig from "dependency-cruiser/config-utl/extract-ts-config"
import { assert, describe, it } from "vitest"
import { root } from "../repository/support/command.js"

const require = createRequire(import.meta.url)

const { scripts } = require("../../package.json") as { readonly scripts: { readonly "lint:deps": string } }

/** The configuration and the folders of `npm run lint:deps`. */
const [config = "", ...linted] = scripts["lint:deps"].split(" --config ")[1]?.split(" ") ?? []

const load = (tree: string) =>
  require(join(tree, config)) as {
    readonly forbidden: Array<{ readonly name: string }>
    readonly options: { readonly enhancedResolveOptions: object; readonly tsConfig: { readonly fileName: string } }
  }

/** Applies the rules in a tree to some of its folders. */
const lint = async (tree: string, folders: Array<string>) => {
  const { forbidden, options } = load(tree)
  const { output } = await cruise(
    folders,
    { ...options, baseDir: tree, validate: true, ruleSet: { forbidden: forbidden as Array<never> } },
    options.enhancedResolveOptions,
    { tsConfig: extractTSConfig(options.tsConfig.fileName) }
  )
  return output as ICruiseResult
}

const folders = [...readdirSync(join(root, "packages")).map((name) => `packages/${name}`), "examples"]
  .flatMap((member) => [`${member}/src`, `${member}/test`])
  .filter((folder) => existsSync(join(root, folder)))

const sources = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
)

const core = "packages/core/src"

/** A rule, a module, and an import in it that breaks the rule. */
const offences = [
  ["layer-1-imports-from-below", `${core}/AccessTokenMetrics.ts`, `import type {} from "./StoreAuth.js"`],
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
  ["core-imports-from-below", `${core}/internal/manualRedirect.ts`, `import "@store-api/platform-node"`],
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

/** Modules with these imports. The modules that they name are empty, except for an index that closes a circle. */
const withOffences = () => {
  const tree = mkdtempSync(join(tmpdir(), "lint-deps-"))
  cpSync(join(root, "tools", "lint-deps"), join(tree, "tools", "lint-deps"), { recursive: true })
  cpSync(join(root, "tsconfig.base.json"), join(tree, "tsconfig.base.json"))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text, { flag: "a" })
  }
  write(`${core}/index.ts`, `import "./AccessTokenError.js"\n`)
  for (const [, module, line] of offences) {
    write(module, `${line}\n`)
    const [, imported] = /"(\..*)"/.exec(line) ?? []
    if (imported !== undefined) write(join(dirname(module), imported.replace(/[.]js$/, ".ts")), "")
  }
  for (
    const name of [
      "core/src/internal/seal",
      "platform-node/src/index",
      "emulator/src/index",
      "cli/src/index",
      "redis/src/index"
    ]
  ) {
    write(`packages/${name}.ts`, "")
  }
  return tree
}

describe("the rules on imports", { timeout: 120_000 }, () => {
  it("hold in each source and test of the packages and examples", async () => {
    const { modules, summary } = await lint(root, folders)
    assert.deepStrictEqual(summary.violations.map(({ from, rule, to }) => `${rule.name}: ${from} → ${to}`), [])
    assert.isAbove(sources.length, 100)
    assert.includeMembers(modules.map(({ source }) => source), sources)
  })

  it("are each broken by an import", async () => {
    const tree = withOffences()
    const { summary } = await lint(tree, linted)
    rmSync(tree, { recursive: true })
    const found = summary.violations.map(({ from, rule }) => `${rule.name} ${from}`)
    const missed = offences.map(([rule, module]) => `${rule} ${module}`).filter((offence) => !found.includes(offence))
    assert.deepStrictEqual(missed, [])
    assert.isAbove(summary.error, 0)
    // `index` is the top layer.
    const rules = load(root).forbidden.map(({ name }) => name).filter((name) => name !== "layer-7-imports-from-below")
    assert.sameMembers(rules, [...new Set(offences.map(([rule]) => rule))])
  })
})
