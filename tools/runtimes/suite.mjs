/** Runs the whole test suite on a Node, like `npm run test:all`, and fails if a test is skipped. */
import { readFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { root } from "../workspace/workspace.mjs"
import { run, withTemporaryFolder } from "./processes.mjs"

/** Six minutes on a quiet machine of two cores. */
const deadline = 30 * 60_000

/** Tests start `node`, `npm` and `npx` by name, and all of them must belong to this Node. */
const onPath = (node) => ({ PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` })

/** The version of Node that `npm` runs on. */
const nodeOfNpm = async (node) => {
  const { stdout } = await run("npm", ["version", "--json"], { cwd: root, deadline: 60_000, env: onPath(node) })
  return JSON.parse(stdout).node
}

const reportIn = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return {}
  }
}

export const suite = async (node, version) => {
  const npmOn = await nodeOfNpm(node)
  if (npmOn !== version) throw new Error(`npm would run on Node ${npmOn}, not on ${version}`)
  return withTemporaryFolder(async (folder) => {
    const file = join(folder, "report.json")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const { problem, status } = await run(
      node,
      [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...reporters],
      { cwd: root, deadline, env: { ...onPath(node), CI: "true" }, show: true }
    )
    const { numFailedTestSuites = 0, numPassedTests = 0, numTotalTests = 0, testResults = [] } = reportIn(file)
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
    const failed = tests.filter((test) => test.status === "failed").length
    // A file that could not be loaded has no tests to count.
    const skipped = Math.max(numTotalTests - numPassedTests - failed, 0)
    const broken = status !== 0 || numFailedTestSuites > 0 || numPassedTests === 0 || failed > 0 || skipped > 0
    return {
      passed: numPassedTests,
      failed: broken ? Math.max(failed, 1) : 0,
      skipped,
      problems: broken ? [`the suite ended with ${problem ?? status}, ${skipped} tests skipped`] : []
    }
  })
}
