/**
 * `node benchmarks/dist/main.js [--quick]`: measures, prints, and writes `docs/evidence/benchmarks.md` and its plots.
 * `--quick` takes less time and writes nothing. Exits with code 1 only when counts are wrong: token requests, failed
 * calls, expired tokens.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { coldStartTable } from "./coldStart.js"
import { broken, goals } from "./goals.js"
import { machine } from "./machine.js"
import { measureAll } from "./measure.js"
import { hitPlot, loadPlot, stampedePlot } from "./plots.js"
import { document, goalTable, hitTable, peerTable, split, stampedeTable } from "./report.js"
import { plain } from "./table.js"

const quick = process.argv.includes("--quick")
const began = performance.now()
const seconds = () => Math.round((performance.now() - began) / 1000)

// Everything is on this machine, but some libraries would use a proxy.
for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
  process.env[name] = ""
  process.env[name.toLowerCase()] = ""
}

const print = (value: string) => process.stdout.write(`${value}\n`)

const results = await measureAll(quick, (what) => process.stderr.write(`${`${seconds()}`.padStart(4)} s  ${what}\n`))
const environment = machine()
const reached = goals(results)

print(`\n${environment.cpu}, ${environment.cores} cores, ${environment.memory}, Node ${environment.node}\n`)
// One block per goal, because its cells are too long for columns.
for (const [what, goal, limit, measured, verdict] of goalTable(reached).slice(1)) {
  print(`${what ?? ""}\n    goal ${goal ?? ""}; limit ${limit ?? ""}\n    ${measured ?? ""}\n    -> ${verdict ?? ""}`)
}
print("")
for (
  const table of [
    hitTable(results.hits),
    hitTable(results.traced.hits, "traced"),
    stampedeTable(results),
    coldStartTable(results.coldStart),
    peerTable(results)
  ]
) print(`${plain(table)}\n`)

if (!quick) {
  const docs = (path: string) => fileURLToPath(new URL(`../../../docs/evidence/${path}`, import.meta.url))
  mkdirSync(docs("benchmarks"), { recursive: true })
  const [, effect4] = split(readFileSync(docs("benchmarks.md"), "utf8"))
  writeFileSync(docs("benchmarks.md"), document(results, reached, environment) + effect4)
  writeFileSync(docs("benchmarks/hit.svg"), await hitPlot(results))
  writeFileSync(docs("benchmarks/stampede.svg"), await stampedePlot(results))
  writeFileSync(
    docs("benchmarks/load.svg"),
    await loadPlot({ ...results, loads: results.loads.filter(({ name }) => name !== "openid-client") })
  )
  print("Written: docs/evidence/benchmarks.md, docs/evidence/benchmarks/*.svg")
}
print(`${seconds()} s in all`)

const wrong = broken(results)
for (const what of wrong) process.stderr.write(`Broken: ${what}\n`)
process.exitCode = wrong.length === 0 ? 0 : 1
