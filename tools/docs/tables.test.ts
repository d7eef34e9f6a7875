/** Compares the tables of the documentation with the sources: options, variables, flags and metrics. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { AccessTokenMetrics, SharedTokenSource } from "@store-api/core"
import { Metric } from "effect"
import { assert, describe, it } from "vitest"
import { exitCodes } from "../../packages/cli/src/CommandError.js"
import { commands } from "../../packages/cli/src/commands.js"
import { root } from "../support/command.js"
import { codes, filesOf, read, rows, sectionOf, sections } from "../support/pages.js"

const configuration = "docs/reference/configuration.md"

/** Writes a type alike for both pages: without links and module names, and with `{…}` for an object. */
const plain = (text = "") =>
  text.replace(/\]\([^)]*\)|[`\\[\]]/g, "").replace("*typeof*", "typeof")
const typeOf = (text?: string) =>
  plain(text).replace(/\b\w+\.(?=[A-Z])/g, "").replace(/^\{.*\}$/, "{…}")

const listedIn = (module: string) =>
  new Map(
    rows(sectionOf(configuration, `\`${module}\``)).map(([name, type, value = ""]) =>
      [codes(name)[0] ?? "", { type: typeOf(type), value }] as const
    )
  )

/** The options of each public module, from the generated reference: with their types, and whether they are required. */
const modules = filesOf("packages/*/src/index.ts").flatMap((index) =>
  [...read(index).matchAll(/^export \* as (\w+) /gm)].map(([, name = ""]) => {
    const folder = index.replace("packages", "docs/reference/api").replace("src/index.ts", "")
    // Packages other than core have one page, with a section per module.
    const [own = ""] = read(`${folder}README.md`).split(/^(?=## )/m).filter((part) =>
      part.startsWith(`## ${name}\n`)
    )
    const page = `${folder}${name}.md`
    const text = existsSync(join(root, page)) ? read(page) : own.replace(/^#(?=###)/gm, "")
    const options = sections(text)
      .filter(({ heading }) => heading.endsWith("Options")).flatMap(({ text }) => rows(text))
      // `shared` has a section of its own: `SharedTokenSource`.
      .filter(([cell, type]) => type !== "`undefined`" && !cell?.includes("`shared?`"))
      .map(([cell = "", type, text]) => {
        const [path = ""] = codes(cell)
        return {
          path: path.replace("?", ""),
          type: typeOf(type),
          required: !path.endsWith("?"),
          text: plain(text)
        }
      })
    return { name, options }
  })
).filter(({ options }) => options.length > 0)

describe(configuration, () => {
  /** The options that other modules have too. */
  const shared = new Map([...listedIn("StoreAuth"), ...listedIn("NodeStoreAuth")])

  it("has a section for each module that takes options, and no other", () => {
    assert.isAbove(modules.length, 8)
    assert.sameMembers(
      sections(read(configuration)).map(({ heading }) => heading).filter((heading) =>
        /^`[A-Z]\w+`$/.test(heading)
      ),
      modules.map(({ name }) => `\`${name}\``)
    )
  })

  it.each(modules)(
    "$name: each option with its type and default, and no other",
    ({ name, options }) => {
      const own = listedIn(name)
      for (const { path, required, text, type } of options) {
        const { value, ...listed } = own.get(path) ?? shared.get(path) ??
          assert.fail(`${path} is not listed`)
        // The reference names the type of another option only by its module.
        if (!type.includes("Options")) assert.strictEqual(listed.type, type, path)
        if (required) assert.match(value, /^required/, path)
        else if (value === "") assert.notMatch(text, /default(?!\.)/i, path)
        else {assert.isTrue(
            /default/i.test(text) && text.includes(plain(value)),
            `the default of ${path}`
          )}
      }
      for (const path of own.keys()) assert.include(options.map((option) => option.path), path)
    }
  )
})

describe("docs/reference/command-line.md", () => {
  const textOf = (heading: string) => sectionOf("docs/reference/command-line.md", heading)
  const flagsOf = (heading: string) =>
    rows(textOf(heading)).map(([flag]) => codes(flag)[0] ?? "")

  it("lists the flags of store-api with the commands that take them", () => {
    const taken = Object.entries(commands).filter(([command]) =>
      !command.startsWith("emulator")
    )
      .flatMap(([command, { flags }]) =>
        Object.entries(flags).map(([name, { value }]) =>
          `${command} --${name}${value === undefined ? "" : ` ${value}`}`
        )
      )
    assert.isAbove(taken.length, 60)
    const common = codes(textOf("Common flags").split("|")[0])
    assert.sameMembers([
      ...common.flatMap((command) =>
        flagsOf("Common flags").map((flag) => `${command} ${flag}`)
      ),
      ...rows(textOf("Flags of a command")).flatMap(([flag, of]) =>
        codes(of).map((command) => `${command} ${codes(flag)[0] ?? ""}`)
      )
    ], taken)
  })

  it("lists the commands and the flags of the emulator as its help does", () => {
    const [start, ...others] = Object.entries(commands).filter(([name]) =>
      name.startsWith("emulator")
    )
    assert.deepStrictEqual(
      flagsOf("Flags of the emulator"),
      Object.entries(start?.[1].flags ?? {}).map(([name, { value }]) =>
        `--${name}${value === undefined ? "" : ` ${value}`}`
      )
    )
    assert.deepStrictEqual(
      rows(textOf("Commands for a running emulator")).map(([command]) => codes(command)[0]),
      others.map(([name, { args = [], flags }]) => {
        const own = Object.keys(flags).filter((flag) => flag !== "port").map((flag) =>
          `[--${flag}]`
        )
        return [name.slice("emulator ".length), args, own].flat().join(" ")
      })
    )
  })

  it("lists each command, and the exit codes as the help does", () => {
    assert.deepStrictEqual(
      rows(textOf("Commands")).map(([command]) => codes(command)[0]?.split(" ")[1]),
      Object.keys(commands).filter((name) => !/^(profile|emulator) /.test(name))
    )
    const line = (code: number | string, text: string) =>
      `${code} ${plain(text).toLowerCase()}`
    assert.deepStrictEqual(
      rows(textOf("Exit codes")).map(([code = "", text = ""]) => line(code, text)),
      Object.values(exitCodes).map(({ code, text }) => line(code, text))
    )
  })
})

it("docs/guides/telemetry.md has the metrics that the modules export, and no other", () => {
  for (const value of Object.values<object>({ ...AccessTokenMetrics, ...SharedTokenSource })) {
    if (Metric.MetricTypeId in value) (value as Metric.Metric.Counter<number>).register()
  }
  const registered = Metric.unsafeSnapshot().map(({ metricKey }) => metricKey.name)
  assert.sameMembers(
    rows(sectionOf("docs/guides/telemetry.md", "Metrics")).map(([name]) => codes(name)[0]),
    [...new Set(registered.filter((name) => name.startsWith("store_api_")))]
  )
})
