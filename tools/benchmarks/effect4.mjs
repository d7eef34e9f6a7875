/**
 * `npm run bench -- effect4`: measures a cached token and the sizes on Effect 4, and writes the section "Effect 4" of
 * docs/evidence/benchmarks.md. Runs the same measurement as on Effect 3.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { buildSync } from "esbuild"
import { buildEffect4, nodeOf, workspace } from "../effect4/generate.mjs"
import { effect4 as versions } from "../effect4/versions.mjs"
import { build } from "../workspace/workspace.mjs"

buildEffect4({})
build("tools/benchmarks")
const { merged } = await import("./dist/harness.js")
const page = await import("./dist/page.js")
const { measureSizes } = await import("./dist/size.js")

const measured = buildSync({
  stdin: {
    contents:
      `import { Effect } from "effect"\nimport { measureHit } from "./hit.js"\nconsole.log(JSON.stringify(await Effect.runPromise(measureHit(1200))))`,
    resolveDir: join(workspace, "packages", "examples")
  },
  bundle: true,
  write: false,
  format: "esm",
  platform: "node",
  packages: "external"
}).outputFiles[0].text
const node = nodeOf()
const run = (...args) => spawnSync(node, args, { cwd: workspace, encoding: "utf8" }).stdout
const hits = merged(
  Array.from(
    { length: 5 },
    () => JSON.parse(run("--expose-gc", "--input-type=module", "-e", measured))
  )
)
const [sizes3, sizes4] = [await measureSizes(), await measureSizes(workspace)]
const kilobytes = ({ gzipped }) => `${page.number(gzipped / 1000, 1)} kB`
const sizes = page.table(
  Object.entries({
    core: "core",
    layer: "`StoreAuth.layer`",
    provider: "`AccessTokenProvider`"
  }),
  [
    ["code of ours, minified and compressed, without Effect", ([, name]) => name],
    ["Effect 3", ([part]) => kilobytes(sizes3[part])],
    ["Effect 4", ([part]) => kilobytes(sizes4[part])]
  ]
)
const effect4 = `Measured by \`npm run bench -- effect4\` on ${page.today()} with Node ${
  run("--version").trim()
} and Effect ${versions.ranges.effect.replace("^", "")} on ${page.processor()}. The
[guide](../guides/effect4.md) describes these packages. The code that measures is that of
[a cached token in one fiber](#a-cached-token-in-one-fiber).

${page.hitTable(hits)}

${sizes}`
page.write(page.benchmarks, page.withTables(page.read(page.benchmarks), { effect4 }))
