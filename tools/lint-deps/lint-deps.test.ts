import { existsSync, readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { cruise, type ICruiseResult } from "dependency-cruiser"
import extractTSConfig from "dependency-cruiser/config-utl/extract-ts-config"
import { assert, describe, it } from "vitest"
import { root } from "../repository/support/command.js"

const { forbidden, options } = createRequire(import.meta.url)("./dependency-cruiser.cjs") as {
  readonly forbidden: Array<never>
  readonly options: { readonly enhancedResolveOptions: object; readonly tsConfig: { readonly fileName: string } }
}

const folders = [...readdirSync(join(root, "packages")).map((name) => `packages/${name}`), "examples"]
  .flatMap((member) => [`${member}/src`, `${member}/test`])
  .filter((folder) => existsSync(join(root, folder)))

const sources = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
)

describe("the rules on imports", () => {
  it("hold in each source and test of the packages and examples", async () => {
    const { output } = await cruise(
      ["packages", "examples"],
      { ...options, baseDir: root, validate: true, ruleSet: { forbidden } },
      options.enhancedResolveOptions,
      { tsConfig: extractTSConfig(options.tsConfig.fileName) }
    )
    const { modules, summary } = output as ICruiseResult
    assert.deepStrictEqual(summary.violations.map(({ from, rule, to }) => `${rule.name}: ${from} → ${to}`), [])
    assert.isAbove(sources.length, 100)
    assert.includeMembers(modules.map(({ source }) => source), sources)
  })
})
