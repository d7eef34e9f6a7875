/** Reads the repository for tests: its files, and the sections, tables and code blocks of its pages. */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./command.js"
import { withoutEffect4 } from "./pairs.mjs"

export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The files that match a pattern of git, without those that git ignores. */
export const filesOf = (...patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  // The checkout may belong to another user, as in a container.
  execFileSync(
    "git",
    [
      "-c",
      "safe.directory=*",
      "ls-files",
      "--cached",
      "--others",
      "--exclude-standard",
      ...patterns
    ],
    { cwd: root, encoding: "utf8" }
  ).trim().split("\n").filter((path) => existsSync(join(root, path)))

/** All pages but those of docs/reference/api, which are generated from the docstrings. */
const pages = filesOf("*.md", ":!docs/reference/api")

export interface Section {
  readonly heading: string
  /** The heading of the level above, if any. */
  readonly under: string
  readonly text: string
}

/** The text under each heading, up to the next one. Code blocks may have lines that start with `#`. */
export const sections = (page: string): ReadonlyArray<Section> => {
  const found: Array<{ heading: string; under: string; text: string }> = []
  let above = ""
  let inCode = false
  for (const line of page.split("\n")) {
    if (line.startsWith("```")) inCode = !inCode
    const [, level = "", heading = ""] = inCode ? [] : /^(#{2,3}) (.*)$/.exec(line) ?? []
    if (level === "") {
      const last = found.at(-1)
      if (last !== undefined) last.text += `${line}\n`
      continue
    }
    found.push({ heading, under: level === "##" ? "" : above, text: "" })
    if (level === "##") above = heading
  }
  return found
}

/** The text under a heading of a page. */
export const sectionOf = (page: string, heading: string): string => {
  const section = sections(read(page)).find((section) => section.heading === heading)
  if (section === undefined) throw new Error(`${page} has no heading ${heading}`)
  return section.text
}

/** The cells of all table rows, without the header rows. A bar in a cell is written `\|`. */
export const rows = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const isRule = (line = "") => /^\|[\s|:-]+$/.test(line)
  return text.split("\n")
    .filter((line, index, lines) =>
      line.startsWith("|") && !isRule(line) && !isRule(lines[index + 1])
    )
    .map((line) =>
      line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll("\\|", "|"))
    )
}

/** The texts between backticks. */
export const codes = (text = ""): ReadonlyArray<string> =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)

export interface CodeBlock {
  readonly file: string
  /** The line on which the code starts. */
  readonly line: number
  readonly language: string
  readonly code: string
}

/** The fenced blocks in a text of a file, without those that are generated for Effect 4. */
export const fenced = (file: string, text: string): ReadonlyArray<CodeBlock> => {
  const blocks: Array<CodeBlock> = []
  let open:
    | { readonly language: string; readonly line: number; readonly code: Array<string> }
    | undefined
  for (const [index, line] of withoutEffect4(text).split("\n").entries()) {
    const fence = /^\s*```(\S*)\s*$/.exec(line)
    if (fence === null) open?.code.push(line)
    else if (open === undefined) open = { language: fence[1] ?? "", line: index + 2, code: [] }
    else {
      blocks.push({
        file,
        line: open.line,
        language: open.language,
        code: open.code.join("\n")
      })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${file}:${open.line}: a code block without an end`)
  return blocks
}

/** The blocks of the pages. */
export const blocksInPages = (): ReadonlyArray<CodeBlock> =>
  pages.flatMap((page) => fenced(page, read(page)))

/** The blocks in the doc comments of the packages. */
export const blocksInSources = (): ReadonlyArray<CodeBlock> =>
  filesOf("packages/*/src/*.ts").flatMap((path) =>
    fenced(
      path,
      read(path).replace(/^(?:\s*\* ?(.*)|.*)$/gm, (_, comment = "") => String(comment))
    )
  )
