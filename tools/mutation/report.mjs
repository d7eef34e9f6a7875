/** Reads, checks and renders the committed report. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../workspace/workspace.mjs"
import { explanations, files, least } from "./files.mjs"

export const reportPath = "docs/evidence/mutation/report.json"
export const pagePath = "docs/evidence/mutation.md"

export const textOf = (path) => readFileSync(join(root, path), "utf8")

/** The problems of a report, as sentences. */
export const problemsOf = (report) =>
  files.flatMap(({ path }) => {
    const measured = report.files?.[path]
    if (measured === undefined) return [`${path}: not in the report`]
    const { killed, noCoverage, score, survived, survivors, timeout } = measured
    const mutants = killed + timeout + survived + noCoverage
    return [
      ...textOf(path).includes("Stryker") ? ["a comment for Stryker: explain the survivor in files.mjs"] : [],
      ...mutants > 0 && score === scoreOf(measured) ? [] : ["its score does not match its counts"],
      ...score >= least ? [] : [`${score} %, less than ${least} %`],
      ...survivors.filter(({ at }) => explanationOf(at) === "").map(({ at }) =>
        `explain in files.mjs why this survived: ${at}`
      )
    ].map((problem) => `${path}: ${problem}`)
  })

/** The mutants that a test found, in percent of all that could run, rounded down to two digits. */
const scoreOf = ({ killed, noCoverage, survived, timeout }) =>
  Math.floor((killed + timeout) / (killed + timeout + survived + noCoverage) * 10_000) / 100

/**
 * Summarises the mutants of one file. Mutants that do not run are not counted. A mutant is identified by its code,
 * because a comment above it moves its line.
 */
export const summaryOf = (path, mutants) => {
  const lines = textOf(path).split("\n")
  // Vitest's own time limit ends a test that hangs. That counts as a timeout too.
  const statusOf = ({ status, statusReason }) =>
    status === "Killed" && /^Test timed out/.test(statusReason) ? "Timeout" : status
  const having = (status) => mutants.filter((mutant) => statusOf(mutant) === status)
  const listed = (status) =>
    having(status)
      .sort((one, other) => one.location.start.line - other.location.start.line)
      .map(({ location, mutatorName, replacement }) => ({
        at: lines[location.start.line - 1].trim(),
        mutator: mutatorName,
        replacement: replacement ?? ""
      }))
  const counts = {
    killed: having("Killed").length,
    timeout: having("Timeout").length,
    survived: having("Survived").length,
    noCoverage: having("NoCoverage").length,
    errors: having("RuntimeError").length + having("CompileError").length
  }
  return { score: scoreOf(counts), ...counts, survivors: [...listed("Survived"), ...listed("NoCoverage")] }
}

/** @returns {{ files: Record<string, object>, versions: Record<string, string> } | undefined} */
export const readReport = () => {
  const path = join(root, reportPath)
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined
}

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("](", "] (").replace(/\s+/g, " ")
const code = (text) => `\`\` ${cell(text).slice(0, 100)} \`\``

/** The report for people. */
export const pageOf = ({ files: measured, versions }) => {
  const entries = Object.entries(measured).map(([path, file]) => ({
    name: path.replace(/^packages\/|src\/|\.ts$/g, ""),
    ...file
  }))
  const rows = entries.map(({ errors, killed, measured, name, noCoverage, score, survived, timeout }) =>
    `| \`${name}\` | ${measured} | ${killed} | ${timeout} | ${survived + noCoverage} | ${errors} | ${score} % |`
  )
  const survivors = entries.flatMap(({ name, survivors }) =>
    survivors.map(({ at, mutator, replacement }) =>
      `| \`${name}\` | ${code(at)} | ${mutator} | ${code(replacement)} | ${cell(explanationOf(at))} |`
    )
  )
  return `# Mutation testing

\`npm run mutation\` changes the code of core and of the stores, one change at a time, and runs the tests on each change. A
change that no test finds has survived. The command fails if the tests of any file find less than ${least} % of its changes.
It writes this page; the code may have changed since a file was measured.

| file | measured | found | found by a timeout | survived | did not run | score |
|---|---|---|---|---|---|---|
${rows.join("\n")}

${Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ")}.

Each file is measured with its own tests, without the slowest and without those that start processes. A change that only
these would find counts as survived. All mutators are on.

## Survived

${
    survivors.length === 0
      ? "None."
      : ["| file | code | mutator | replaced by | why no test finds it |", "|---|---|---|---|---|", ...survivors]
        .join("\n")
  }
`
}

/** Finds the explanation of a survivor by the first words of its line. */
const explanationOf = (at) => Object.entries(explanations).find(([start]) => at.startsWith(start))?.[1] ?? ""
