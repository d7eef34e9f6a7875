/** The code in the documentation: fenced blocks in Markdown and in doc comments. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./command.js"

export interface CodeBlock {
  /** The file, relative to the root, and the line on which the code starts. */
  readonly file: string
  readonly line: number
  readonly language: string
  readonly code: string
}

/** All pages but those of docs/reference/api: their examples are in the docstrings, their other code in the sources. */
const markdownFiles = (): ReadonlyArray<string> => [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  join("examples", "README.md"),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name))
    .filter((file) => !file.startsWith(join("docs", "reference", "api"))),
  ...packages().map((name) => join("packages", name, "README.md")).filter((file) => existsSync(join(root, file)))
]

export const packages = () =>
  readdirSync(join(root, "packages")).filter((name) => existsSync(join(root, "packages", name, "src")))

const sourceFiles = () =>
  packages().flatMap((name) =>
    readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => join("packages", name, "src", path))
  )

/** The fenced blocks in the given lines. */
export const fenced = (file: string, lines: ReadonlyArray<string>): ReadonlyArray<CodeBlock> => {
  const blocks: Array<CodeBlock> = []
  let open: { readonly language: string; readonly line: number; readonly code: Array<string> } | undefined
  for (const [index, line] of lines.entries()) {
    const fence = /^\s*```(\S*)\s*$/.exec(line)
    if (fence === null) open?.code.push(line)
    else if (open === undefined) open = { language: fence[1] ?? "", line: index + 2, code: [] }
    else {
      blocks.push({ file, line: open.line, language: open.language, code: open.code.join("\n") })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${file}:${open.line}: a code block without an end`)
  return blocks
}

const read = (file: string): ReadonlyArray<string> => readFileSync(join(root, file), "utf8").split("\n")

export const ofMarkdown = (): ReadonlyArray<CodeBlock> => markdownFiles().flatMap((file) => fenced(file, read(file)))

/**
 * How many TypeScript code blocks begin anywhere in the sources. `ofSources` must find as many.
 */
export const fencesInSources = (): number =>
  sourceFiles().reduce((sum, file) => sum + read(file).filter((line) => line.includes("```ts")).length, 0)

/** The blocks in doc comments. */
export const ofSources = (): ReadonlyArray<CodeBlock> =>
  sourceFiles().flatMap((file) => fenced(file, read(file).map((line) => /^\s*\* ?(.*)$/.exec(line)?.[1] ?? "")))
