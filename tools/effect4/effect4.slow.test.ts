/**
 * Generates the whole Effect 4 line without writing it, and compares docs/explanation/comparison.md with the installed
 * Effect 4.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { install, root } from "../workspace/workspace.mjs"
import { generate, line } from "./generate.mjs"

const generated = () => {
  const written = new Map<string, string>()
  const problems = generate(
    undefined,
    (files: ReadonlyMap<string, string>) => files.forEach((text, path) => written.set(path, text))
  )
  return { problems, written }
}

// The generator reads which modules Effect 4 has.
beforeAll(() => install("tools/effect4/line"), 300_000)

describe("the generated Effect 4 line", () => {
  it("is the same, byte for byte, when it is generated again", { timeout: 120_000 }, () => {
    const [first, second] = [generated(), generated()]
    assert.deepStrictEqual([first.problems, second.problems], [[], []])
    assert.isAbove(first.written.size, 300)
    assert.deepStrictEqual([...second.written.keys()], [...first.written.keys()])
    for (const [path, text] of first.written) assert.isTrue(second.written.get(path) === text, path)
  })
})

describe("the section of Effect 4 in docs/explanation/comparison.md", () => {
  const page = readFileSync(join(root, "docs/explanation/comparison.md"), "utf8")
  const section = page.split("\n## ").find((part) => part.startsWith("On Effect 4\n")) ?? ""
  const read = (path: string) => readFileSync(join(line, "node_modules/effect", path), "utf8")

  it("names the installed version", () => {
    const { version } = JSON.parse(read("package.json")) as { readonly version: string }
    assert.include(section, `\`effect\` ${version}.`)
  })

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
