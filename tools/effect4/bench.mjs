/**
 * `node tools/effect4/bench.mjs`: prints the speed and size of the Effect 4 line as a table for docs/guides/effect4.md.
 * Needs `npm run effect4` before. Each design is one loop in one fiber, in rounds that alternate in one process; the
 * ratio is the median over five processes.
 */
import { spawnSync } from "node:child_process"
import { build } from "../workspace/workspace.mjs"
import { nodeOf } from "./build.mjs"
import { line } from "./generate.mjs"

const measured = `
import { AccessTokenProvider, TokenSource, AccessToken } from "@store-api/core"
import { Cache, DateTime, Effect, Layer, Redacted, Ref } from "effect"
const now = DateTime.makeUnsafe(Date.now())
const token = new AccessToken.AccessToken({ value: Redacted.make("a"), acquiredAt: now, expiresAt: DateTime.add(now, { hours: 1 }) })
const source = TokenSource.layer(() => Effect.succeed(token))
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]
const program = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const ref = yield* Ref.make(token)
  const cache = yield* Cache.make({ capacity: 1, timeToLive: "1 hour", lookup: () => Effect.succeed(token) })
  const designs = {
    "Ref.get": Ref.get(ref),
    "provider.get": provider.get,
    "Cache.get": Cache.get(cache, "token"),
    "Effect.cachedWithTTL": yield* Effect.cachedWithTTL(Effect.succeed(token), "1 hour")
  }
  const times = Object.fromEntries(Object.keys(designs).map((name) => [name, []]))
  for (let round = 0; round < 600; round++) {
    for (const [name, effect] of Object.entries(designs).sort(() => Math.random() - 0.5)) {
      const started = performance.now()
      for (let index = 0; index < 1000; index++) yield* effect
      if (round >= 100) times[name].push(performance.now() - started)
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, values]) => [name, median(values)]))
})
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, Layer.provide(AccessTokenProvider.layer(), source)))))
`

const node = await nodeOf()
const runs = Array.from({ length: 5 }, () => {
  const { stdout } = spawnSync(node, ["--input-type=module", "-e", measured], { cwd: line, encoding: "utf8" })
  return JSON.parse(stdout)
})
const row = (...cells) => process.stdout.write(`| ${cells.join(" | ")} |\n`)
const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1]
for (const name of Object.keys(runs[0])) {
  const ratios = runs.map((run) => run[name] / run["Ref.get"])
  row(name, `${Math.round(1000 * middle(runs.map((run) => run[name])))} ns`, `${middle(ratios).toFixed(2)} ×`)
}

build("tools/benchmarks")
const { measureSize } = await import("../benchmarks/dist/size.js")
const sizes = {
  "whole core": `export * from "@store-api/core"`,
  "`StoreAuth.layer`": `export { layer } from "@store-api/core/StoreAuth"`,
  "`AccessTokenProvider`": `export * from "@store-api/core/AccessTokenProvider"`
}
for (const [name, code] of Object.entries(sizes)) {
  const { gzipped } = await measureSize(code, line)
  row(name, `${(gzipped / 1000).toFixed(1)} kB`)
}
