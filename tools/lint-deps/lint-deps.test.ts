import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"

interface Report {
  readonly modules: ReadonlyArray<{ readonly source: string }>
  readonly summary: {
    readonly violations: ReadonlyArray<{ readonly from: string; readonly to: string; readonly rule: { name: string } }>
  }
}

/** The check of `npm run floors`, on a tree. */
const cruise = (tree: string, ...args: ReadonlyArray<string>) => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly scripts: { readonly "lint:deps": string }
  }
  const [, ownArgs = ""] = scripts["lint:deps"].split(" depcruise ")
  return run(
    process.execPath,
    [join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs"), ...args, ...ownArgs.split(" ")],
    { cwd: tree }
  )
}

const floors = async (tree: string) => {
  const { stderr, stdout } = await cruise(tree, "--output-type", "json")
  if (stdout === "") throw new Error(stderr)
  const { modules, summary } = JSON.parse(stdout) as Report
  return {
    violations: summary.violations.map(({ from, rule, to }) => ({ rule: rule.name, module: from, to })),
    seen: modules.map(({ source }) => source).filter((source) => /^packages\/[^/]+\/src\//.test(source)).sort()
  }
}

const sources = (tree: string) =>
  readdirSync(join(tree, "packages"))
    .filter((name) => existsSync(join(tree, "packages", name, "src")))
    .flatMap((name) =>
      readdirSync(join(tree, "packages", name, "src"), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".ts"))
        .map((path) => `packages/${name}/src/${path.replaceAll("\\", "/")}`)
    )
    .sort()

const temporary: Array<string> = []
afterAll(() => temporary.forEach((path) => rmSync(path, { recursive: true })))

/** The tree once more: its sources copied, what is installed linked. */
const copy = () => {
  const tree = mkdtempSync(join(tmpdir(), "floors-"))
  temporary.push(tree)
  for (const file of ["tools/lint-deps/dependency-cruiser.cjs", "package.json", "tsconfig.base.json"]) {
    cpSync(join(root, file), join(tree, file))
  }
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
  for (const name of readdirSync(join(root, "packages"))) {
    const [from, to] = [join(root, "packages", name), join(tree, "packages", name)]
    if (!existsSync(join(from, "package.json"))) continue
    cpSync(from, to, { recursive: true, filter: (path) => !/[\\/](node_modules|\.tsbuild)$/.test(path) })
    if (existsSync(join(from, "node_modules"))) symlinkSync(join(from, "node_modules"), join(to, "node_modules"))
  }
  return tree
}

interface Offence {
  readonly rule: string
  readonly module: string
  readonly line: string
}

const core = "packages/core/src"

/** One bad import for each rule: in a module that exists, or, where one of the house is missing, a new one. */
const offences: ReadonlyArray<Offence> = [
  {
    rule: "floor-1-imports-from-below",
    module: `${core}/TokenPolicy.ts`,
    line: `import type {} from "./StoreAuth.js"`
  },
  { rule: "floor-2-imports-from-below", module: `${core}/AccessToken.ts`, line: `import "./TokenSource.js"` },
  { rule: "floor-3-imports-from-below", module: `${core}/TokenSource.ts`, line: `import "./TokenEndpoint.js"` },
  {
    rule: "floor-4-imports-from-below",
    module: `${core}/TokenEndpoint.ts`,
    line: `export * from "./AuthorizedHttpClient.js"`
  },
  {
    rule: "floor-5-imports-from-below",
    module: `${core}/AuthorizedHttpClient.ts`,
    line: `export const later = () => import("./StoreAuth.js")`
  },
  { rule: "floor-6-imports-from-below", module: `${core}/StoreAuth.ts`, line: `import "./index.js"` },
  { rule: "no-circular", module: `${core}/AccessTokenError.ts`, line: `import type {} from "./TokenSource.js"` },
  { rule: "core-knows-no-node", module: `${core}/AccessTokenProvider.ts`, line: `import "node:fs"` },
  { rule: "core-knows-no-node", module: `${core}/internal/sanitise.ts`, line: `import "crypto"` },
  {
    rule: "core-has-two-peers",
    module: `${core}/TokenResponse.ts`,
    line: `import "@effect/platform-node/NodeHttpClient"`
  },
  { rule: "every-module-has-a-floor", module: `${core}/internal/homeless.ts`, line: `import "./sanitise.js"` },
  { rule: "core-has-two-peers", module: `${core}/internal/baseUrl.ts`, line: `import "@store-api/emulator"` },
  {
    rule: "emulator-stands-alone",
    module: "packages/emulator/src/Emulator.ts",
    line: `import "../../core/src/index.js"`
  },
  { rule: "emulator-stands-alone", module: "packages/emulator/src/Client.ts", line: `import "@store-api/core"` },
  {
    rule: "platform-node-stands-on-core",
    module: "packages/platform-node/src/NodeStoreAuth.ts",
    line: `import "@store-api/emulator"`
  },
  {
    rule: "platform-node-stands-on-core",
    module: "packages/platform-node/src/index.ts",
    line: `import "../../core/src/index.js"`
  },
  {
    rule: "redis-stands-on-core",
    module: "packages/redis/src/RedisTokenStore.ts",
    line: `import "@store-api/platform-node"`
  },
  { rule: "cli-stands-on-three", module: "packages/cli/src/tokens.ts", line: `import "@store-api/redis"` },
  { rule: "cli-stands-on-three", module: "packages/cli/src/time.ts", line: `import "../../core/src/index.js"` },
  {
    rule: "nobody-imports-cli",
    module: "packages/redis/src/index.ts",
    line: `import "../../cli/dist/flags.js"`
  },
  {
    rule: "nobody-imports-cli",
    module: "packages/platform-node/src/FileTokenStore.ts",
    line: `import "@store-api/cli"`
  },
  {
    rule: "sources-import-no-tests",
    module: "packages/emulator/src/Fault.ts",
    line: `import "../test/utils.js"`
  }
]

describe("the floors", { timeout: 120_000 }, () => {
  it("hold, and every module was looked at", async () => {
    const { seen, violations } = await floors(root)
    assert.deepStrictEqual(violations, [])
    assert.deepStrictEqual(seen, sources(root))
    assert.isAbove(seen.length, 40)
  })

  it("would not hold with an import upwards, in a circle, or of Node: each is found", async () => {
    const tree = copy()
    for (const { line, module } of offences) {
      const path = join(tree, module)
      writeFileSync(path, `${line}\n${existsSync(path) ? readFileSync(path, "utf8") : ""}`)
    }
    const { violations } = await floors(tree)
    const found = violations.map(({ module, rule }) => `${rule}: ${module}`)
    for (const { module, rule } of offences) assert.include(found, `${rule}: ${module}`)
    // What `npm run floors` and its exit code make of it.
    const { status, stdout } = await cruise(tree)
    assert.notStrictEqual(status, 0)
    assert.include(stdout, "core-knows-no-node")
  })

  it("have a rule for each offence that is tried, and an offence for each rule", () => {
    const { forbidden } = createRequire(import.meta.url)("./dependency-cruiser.cjs") as {
      readonly forbidden: ReadonlyArray<{ readonly name: string }>
    }
    // Above `index` there is nothing to import from.
    const names = forbidden.map(({ name }) => name).filter((name) => name !== "floor-7-imports-from-below")
    assert.deepStrictEqual([...new Set(names)].sort(), [...new Set(offences.map(({ rule }) => rule))].sort())
  })
})
