/** The committed report of `npm run mutation` is of the files as they are, and each of them is above its threshold. */
import { files } from "../tools/mutation/files.mjs"
import { hashOf, pageOf, pagePath, problemsOf, readReport, reportPath, textOf } from "../tools/mutation/report.mjs"

const report = readReport()
if (report === undefined) {
  process.stderr.write(`${reportPath} is not there: npm run mutation\n`)
  process.exit(1)
}
const problems = problemsOf(report)
if (textOf(pagePath) !== pageOf(report)) problems.push(`${pagePath} is not of the report`)

// Controls: what must be found, and what must not.
const [{ path }] = files
const text = textOf(path)
const changed = (next) => hashOf(next, path) !== hashOf(text, path)
const saying = (next) => problemsOf(report, () => next).join("\n")
const without = { ...report, files: Object.fromEntries(Object.entries(report.files).slice(1)) }
const altered = (change) => ({ ...report, files: { ...report.files, [path]: { ...report.files[path], ...change } } })
const controls = [
  ["a file that changed", saying("export {}").split("has changed").length > files.length],
  ["an exemption of a whole file", saying(`// Stryker disable all: because\n${text}`).includes("not for one line")],
  ["a changed number", changed(text.replace(/60_000/, "61_000"))],
  [
    "a new exemption",
    changed(text.replace(/^export const/m, "// Stryker disable next-line all: because\nexport const"))
  ],
  ["a file that is missing", problemsOf(without).some((problem) => problem.includes("not in the report"))],
  ["a low score", problemsOf(altered({ killed: 89, survived: 11, timeout: 0, noCoverage: 0, score: 89 })).length > 0],
  ["a score typed in", problemsOf(altered({ survived: 1000 })).length > 0],
  [
    "an exemption without a reason",
    problemsOf(altered({ ignored: [{ at: "x", mutator: "x", reason: "" }] })).length > 0
  ],
  ["no change in a comment", !changed(`/** Some words. */\n${text}`)]
]
for (const [name, found] of controls) if (!found) problems.push(`the check itself: ${name} is not told`)

for (const problem of problems) process.stdout.write(`${problem}\n`)
if (problems.length > 0) process.stdout.write("npm run mutation measures anew.\n")
else for (const { path } of files) process.stdout.write(`${path}: ${report.files[path].score} %\n`)
process.exitCode = problems.length > 0 ? 1 : 0
