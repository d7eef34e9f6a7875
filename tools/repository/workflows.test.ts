/** The workflows are valid, run only commands that exist, and have the fewest permissions. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parseDocument } from "yaml"
import { root } from "./support/command.js"

interface Step {
  readonly run?: string
  readonly uses?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps?: ReadonlyArray<Step>
  readonly "timeout-minutes"?: number
  readonly uses?: string
}

interface Workflow {
  readonly concurrency?: unknown
  readonly jobs?: Readonly<Record<string, Job>>
  readonly on?: unknown
  readonly permissions?: unknown
}

const folder = join(root, ".github", "workflows")
const files = readdirSync(folder).sort()
const read = (file: string) => readFileSync(join(folder, file), "utf8")
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>
}

const commandProblems = (command: string): ReadonlyArray<string> => [
  ...[...command.matchAll(/npm run (?:--?\S+ )*(\S+)/g)]
    .filter(([, name = ""]) => !(name in scripts))
    .map(([line]) => `there is no ${line}`),
  ...[...command.matchAll(/(?:bash|node) (\S+)/g)]
    .filter(([, path = ""]) => !existsSync(join(root, path)))
    .map(([, path]) => `there is no ${path ?? ""}`),
  ...(/\$\{\{/.test(command) ? ["an expression in a command is code that anyone may write: pass it by env"] : [])
]

const usesProblems = (uses: string, text: string): ReadonlyArray<string> => {
  if (uses.startsWith("./")) return existsSync(join(root, uses)) ? [] : [`there is no ${uses}`]
  const pinned = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/.test(uses)
  const tagged = text.split("\n").some((line) => line.includes(`uses: ${uses} # v`))
  return [
    ...(pinned ? [] : [`${uses} is not pinned by the hash of a commit`]),
    ...(pinned && !tagged ? [`${uses} does not say which version that is`] : [])
  ]
}

const problems = (text: string): ReadonlyArray<string> => {
  const document = parseDocument(text, { prettyErrors: false })
  const faults = [...document.errors, ...document.warnings].map(({ message }) => message)
  if (faults.length > 0) return faults
  const workflow = document.toJS() as Workflow
  const jobs = Object.entries(workflow.jobs ?? {})
  return [
    ...(workflow.on === undefined ? ["it is never run"] : []),
    ...(jobs.length === 0 ? ["it does nothing"] : []),
    ...(JSON.stringify(workflow.permissions) === "{}" ? [] : ["permissions at the top are not {}"]),
    ...(workflow.concurrency === undefined ? ["it may run beside itself"] : []),
    ...jobs.flatMap(([name, job]) => {
      const called = job.uses !== undefined
      const steps = job.steps ?? []
      const found = [
        ...(job.permissions === undefined ? ["no permissions of its own"] : []),
        ...(called || typeof job["timeout-minutes"] === "number" ? [] : ["no timeout"]),
        ...(called || steps.length > 0 ? [] : ["no steps"]),
        ...[job.uses, ...steps.map(({ uses }) => uses)].flatMap((uses) =>
          uses === undefined ? [] : usesProblems(uses, text)
        ),
        ...steps
          .filter(({ uses, with: given }) =>
            uses?.startsWith("actions/checkout@") && given?.["persist-credentials"] !== false
          )
          .map(() => "a checkout leaves its credentials to all that follows"),
        ...steps.flatMap((step) =>
          [step.run, step.with?.["version"], step.with?.["publish"]].flatMap((command) =>
            typeof command === "string" ? commandProblems(command) : []
          )
        )
      ]
      return found.map((problem) => `${name}: ${problem}`)
    })
  ]
}

describe("workflows", () => {
  it("have the expected files", () => {
    assert.deepStrictEqual(files, ["check.yml", "effect4.yml", "mutation.yml", "release.yml", "runtimes.yml"])
  })

  it.each(files)("%s is in order", (file) => {
    assert.deepStrictEqual(problems(read(file)), [])
  })

  it("the check is .ci/run and nothing else", () => {
    const { jobs } = parseDocument(read("check.yml")).toJS() as Workflow
    const commands = Object.values(jobs ?? {}).flatMap(({ steps = [] }) => steps.flatMap(({ run }) => run ?? []))
    assert.deepStrictEqual(commands, ["bash .ci/run"])
  })

  it("only the job that publishes has an identity, and it can write nothing", () => {
    const { jobs } = parseDocument(read("release.yml")).toJS() as Workflow
    const identified = Object.entries(jobs ?? {}).filter(([, job]) => job.permissions?.["id-token"] !== undefined)
    assert.deepStrictEqual(identified.map(([name, { permissions }]) => ({ name, permissions })), [
      { name: "publish", permissions: { contents: "read", "id-token": "write" } }
    ])
  })

  const hash = "3d3c42e5aac5ba805825da76410c181273ba90b1"
  it.each([
    ["text that is not YAML", (text: string) => text.replace("jobs:", "jobs: ["), /./],
    ["a key twice", (text: string) => `${text}\npermissions: {}\n`, /unique/],
    ["a tag for a hash", (text: string) => text.replace(`@${hash}`, "@v7"), /not pinned/],
    ["a short hash", (text: string) => text.replace(hash, hash.slice(0, 8)), /not pinned/],
    ["a hash without its version", (text: string) => text.replace(" # v7.0.1", ""), /which version/],
    [
      "a command that is not there",
      (text: string) => text.replace("npm run mutation", "npm run mutations"),
      /no npm run/
    ],
    ["a script that is not there", (text: string) => text.replace("npm run mutation", "bash .ci/all"), /no .ci\/all/],
    ["too many rights", (text: string) => text.replace("permissions: {}", "permissions: write-all"), /at the top/],
    ["no rights of its own", (text: string) => text.replace(/ {4}permissions:\n.*\n/, ""), /no permissions/],
    ["no timeout", (text: string) => text.replace(/ {4}timeout-minutes.*\n/, ""), /no timeout/],
    ["no concurrency", (text: string) => text.replace(/concurrency:\n(?: .*\n)+/, ""), /beside itself/],
    [
      "credentials that stay",
      (text: string) => text.replace("persist-credentials: false", "fetch-depth: 1"),
      /leaves its/
    ],
    [
      "a command that anyone can change",
      (text: string) => text.replace("run: npm run mutation", `run: "echo \${{ github.head_ref }}"`),
      /anyone may write/
    ]
  ])("%s would be found", (_, change, found) => {
    const text = read("mutation.yml")
    const changed = change(text)
    assert.notStrictEqual(changed, text)
    const [problem = ""] = problems(changed)
    assert.match(problem, found)
  })
})
