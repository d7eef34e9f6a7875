/** `npm run reference` reports what a docstring lacks, and nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Application, Logger, LogLevel } from "typedoc"
import { assert, it } from "vitest"
import { root } from "../repository/support/command.js"

const doc = (...lines: ReadonlyArray<string>) => `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */`
const what = "Says what it is in a sentence."
const since = "@since 1.0.0"
const constants = "@category constants"
const example = "@example\n * ```ts\n * import { Bad } from \"@store-api/core\"\n * Bad.fine()\n * ```"

/** A module with two complete docstrings. Each of the others lacks one part. */
const bad = `${doc(what)}
import "./index.js"
${doc(what, example, since, constants)}
export const fine = () => 1
${doc(what, "@see fine", since, constants)}
export const pointing = 1
${doc(since, "@see fine", constants)}
export const silent = 1
${doc(what, "@see fine", constants)}
export const ageless = 1
${doc(what, "@see fine", since, "@category things")}
export const misplaced = 1
${doc(what, "@see fine", since, constants)}
export const withoutExample = () => 1
${doc(what, "@see pointing", since, constants)}
export const misleading = 1
${doc(what, example, since, constants)}
export const unused = (options: { readonly field: string }) => options
${doc(what, "@see fine", since, "@category models", "@todo more")}
export interface Options {
  /** How long it waits. Default 1 second. */
  readonly wait?: number
  readonly header?: { readonly name: string }
}
`

const reports = async (folder: string) => {
  const files = {
    "package.json": `{ "name": "bad", "type": "module" }`,
    "index.ts": `${doc(what, since)}\nexport * as Bad from "./Bad.js"\n`,
    "Bad.ts": bad,
    "tsconfig.json": `{ "files": ["index.ts"], "compilerOptions": { "module": "NodeNext", "types": [] } }`,
    "typedoc.json": JSON.stringify({
      extends: [join(root, "tools", "reference", "typedoc.json")],
      tsconfig: "tsconfig.json",
      entryPoints: ["index.ts"],
      alwaysCreateEntryPointModule: true
    })
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const reported: Array<string> = []
  const app = await Application.bootstrapWithPlugins({ options: join(folder, "typedoc.json") })
  app.logger = new class extends Logger {
    override log(message: string, level: LogLevel) {
      if (level >= LogLevel.Warn) reported.push(message)
    }
  }()
  const project = await app.convert()
  assert.isDefined(project, reported.join("\n"))
  app.validate(project)
  return reported
}

it("the API reference reports what a docstring lacks, and nothing else", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "reference-test-"))
  assert.sameMembers(await reports(folder), [
    "Encountered an unknown block tag @todo",
    "index.Bad lacks @since",
    "index.Bad.silent lacks a sentence that says what it is",
    "index.Bad.ageless lacks @since",
    "index.Bad.misplaced lacks a @category of typedoc.json",
    "index.Bad.withoutExample lacks @example",
    "index.Bad.misleading lacks an example where @see points",
    "index.Bad.unused lacks an @example that imports and uses it",
    "index.Bad.unused.options.__type.field lacks a sentence",
    "index.Bad.Options.header lacks a sentence",
    "index.Bad.Options.header.__type.name lacks a sentence"
  ])
  rmSync(folder, { recursive: true })
})
