/** Summarises the mutants of one file. */
import { readFileSync } from "node:fs"
import { explanations } from "./files.mjs"

/** The mutants that a test found, in percent of all that could run, rounded down to two digits. */
const scoreOf = ({ killed, survived, timeout }) =>
  Math.floor((killed + timeout) / (killed + timeout + survived) * 10_000) / 100

/** Mutants that do not run are not counted. A survivor is shown by the code in its line. */
export const summaryOf = (path, mutants) => {
  const lines = readFileSync(path, "utf8").split("\n")
  // Vitest's own time limit ends a test that hangs. That counts as a timeout too.
  const statusOf = ({ status, statusReason }) =>
    status === "Killed" && /^Test timed out/.test(statusReason) ? "Timeout" : status
  const having = (...statuses) => mutants.filter((mutant) => statuses.includes(statusOf(mutant)))
  const survivors = having("Survived", "NoCoverage")
    .sort((one, other) => one.location.start.line - other.location.start.line)
    .map(({ location, mutatorName, replacement }) => {
      const code = lines[location.start.line - 1].trim()
      return `${code.slice(0, 90)} → ${mutatorName} ${replacement ?? ""}: ${
        explanationOf(code) ?? "not explained in files.mjs"
      }`
    })
  const counts = {
    killed: having("Killed").length,
    timeout: having("Timeout").length,
    survived: survivors.length
  }
  return { ...counts, score: scoreOf(counts), survivors }
}

/** Finds the explanation of a survivor by the first words of its line. */
const explanationOf = (code) => Object.entries(explanations).find(([start]) => code.startsWith(start))?.[1]
