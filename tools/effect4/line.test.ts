/**
 * Generates the Effect 4 line once more, and compares it with the one on disk. Checks that the docs say what to write
 * with Effect 4, and compares docs/explanation/comparison.md with the installed Effect 4. `npm run effect4` runs it.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, beforeAll, describe, it } from "vitest"
import { blocksInPages, blocksInSources, type CodeBlock } from "../support/pages.js"
import { generate, line } from "./generate.mjs"

/** What the generator would write now, by path. */
const generated = new Map<string, string>()

// The generator blocks for seconds, so Vitest gets a turn before it.
beforeAll(async () => {
  await setImmediate()
  const problems = generate(
    undefined,
    (files: ReadonlyMap<string, string>) => files.forEach((text, path) => generated.set(path, text))
  )
  assert.deepStrictEqual(problems, [])
}, 300_000)

describe("the generated Effect 4 line", () => {
  it("is the same, byte for byte, as in the run before", () => {
    assert.isAbove(generated.size, 300)
    for (const [path, text] of generated) assert.isTrue(readFileSync(join(line, path), "utf8") === text, path)
  })
})

/** The names that a text imports, each with its module. */
const importsOf = (text: string) =>
  [...text.matchAll(/^ *import (?:type )?(?:\{ (.*) \}|(\* as \w+)) from "(.*)"/gm)].flatMap(
    ([, names, all = "", from = ""]) =>
      (names ?? all).split(", ").map((name) => ({ from, name: name.replace(/^type /, "") }))
  )

/**
 * What a block does not explain to a reader on Effect 4. A line that differs has a comment `// Effect 4:` with what to
 * write. The guide says that `effect/http` replaces `@effect/platform`.
 */
const unexplained = ({ code }: CodeBlock, generated: string): ReadonlyArray<string> => {
  const noted = [...code.matchAll(/\/\/ Effect 4: (.*)$/gm)].map(([, text = ""]) => text)
  const shown = code.replaceAll(/ *\/\/ Effect 4: .*$/gm, "").replaceAll("\"@effect/platform\"", "\"effect/http\"")
  // A block in a list is indented.
  const lines = shown.split("\n").map((line) => line.trim())
  const isNoted = (part: string) => shown.includes(part) || noted.some((text) => text.includes(part))
  const written = generated.split("\n").map((line) => line.trim())
  const rows = code.split("\n")
  const hasNote = (index: number) =>
    rows[index]?.includes("// Effect 4: ") === true || /^ *\/\/ Effect 4: /.test(rows[index - 1] ?? "")
  const changed = generated.split("\n").filter((line) => !line.startsWith("import ") && !lines.includes(line.trim()))
  const imported = importsOf(shown).map(({ from, name }) => `${name} ${from}`)
  return [
    ...lines.filter((line, index) =>
      line !== "" && !line.startsWith("import ") && !written.includes(line) && !hasNote(index)
    ).map((line) => `no comment in or above: ${line}`),
    ...changed.filter((line) => {
      const members = line.match(/\b[A-Z]\w*\.\w+/g) ?? []
      return !noted.some((text) => line.includes(text)) && (members.every((member) => shown.includes(member)) ||
        !members.every(isNoted))
    }),
    ...importsOf(generated).filter(({ from, name }) =>
      !imported.includes(`${name} ${from}`) && !noted.some((text) => text.includes(name) || text.includes(from))
    ).map(({ from, name }) => `${name} from "${from}"`),
    ...noted.filter((text) => !generated.includes(text)).map((text) => `not in the code for Effect 4: ${text}`)
  ]
}

describe("the TypeScript blocks of the docs", () => {
  const blocks = [...blocksInPages(), ...blocksInSources()].filter(({ language }) => language === "ts")

  it("are all generated for Effect 4, and say what differs", () => {
    const problems = blocks.flatMap((block) => {
      const place = `${block.file}:${block.line}`
      const code = generated.get(
        join("packages", "examples", `${block.file.replaceAll(/\W/g, "-")}-${block.line}.ts`)
      )
      return code === undefined
        ? [`${place}: is not compiled with Effect 4`]
        : unexplained(block, code).map((problem) => `${place}: ${problem}`)
    })
    assert.deepStrictEqual(problems, [])
    assert.isAbove(blocks.length, 150)
  })

  it("control: a difference without a comment, and a wrong comment, are found", () => {
    const block = (comment: string, from = "effect"): CodeBlock => ({
      ...{ file: "some.md", line: 1, language: "ts" },
      code: `import { Layer } from "${from}"\nconst x = Layer.unwrapEffect(y)${comment}\nconst z = 1\n`
    })
    const effect4 = `import { Layer } from "effect"\nconst x = Layer.unwrap(y)\nconst z = 1\n`
    assert.deepStrictEqual(unexplained(block(" // Effect 4: Layer.unwrap"), effect4), [])
    assert.deepStrictEqual(unexplained(block(""), effect4), [
      "no comment in or above: const x = Layer.unwrapEffect(y)",
      "const x = Layer.unwrap(y)"
    ])
    assert.deepStrictEqual(unexplained(block(" // Effect 4: Layer.wrap"), effect4), [
      "const x = Layer.unwrap(y)",
      "not in the code for Effect 4: Layer.wrap"
    ])
    assert.deepStrictEqual(unexplained(block(" // Effect 4: Layer.unwrap(", "@effect/platform"), effect4), [])
    const whole = effect4.replace("{ Layer } from \"effect\"", "* as Layer from \"effect/Layer\"")
    assert.deepStrictEqual(unexplained(block(" // Effect 4: Layer.unwrap"), whole), [
      "* as Layer from \"effect/Layer\""
    ])
    assert.deepStrictEqual(unexplained(block(" // Effect 4: unwrap(", "@effect/platform"), effect4), [
      "Layer from \"effect\""
    ])
  })
})

describe("the section of Effect 4 in docs/explanation/comparison.md", () => {
  const read = (path: string) => readFileSync(join(line, "node_modules/effect", path), "utf8")

  it.each([
    {
      file: "internal/effect",
      from: "const makeCachedUnsafe =",
      has: [
        ".currentTimeMillisUnsafe() < expiresAt",
        "const duration = ttlMillis(exit_)",
        "if (--run.awaiters > 0 || run.done) return"
      ]
    },
    { file: "internal/effect", from: "const cachedInvalidateWithTTL:", has: ["ttl(exit)"] },
    {
      file: "Cache",
      from: "const makeWith =",
      has: [
        "fromInputUnsafe(options.timeToLive!(exit, key))",
        "const refresh:",
        "const invalidate:",
        "if (this.awaiters > 0 || this.fiber.pollUnsafe()) return",
        ".currentTimeMillisUnsafe() >= entry.expiresAt"
      ]
    }
  ])("the lines of $from that we read still exist", ({ file, from, has }) => {
    const source = read(`src/${file}.ts`)
    const text = source.slice(source.indexOf(from))
    assert.include(source, from)
    for (const part of has) assert.include(text, part)
    assert.notInclude(text.slice(0, 4000), "monotonicTime")
  })
})
