/** Parses the pages of docs: their sections, tables, links, and the tests that they cite. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { slugify } from "../../site/markdown.mjs"
import { root } from "./command.js"

export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The sources of the packages by their paths, `core/src/StoreAuth.ts`, without block comments. */
export const packageSources = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(join(root, "packages")).map((name) => `${name}/src`)
      .filter((folder) => existsSync(join(root, "packages", folder)))
      .flatMap((folder) =>
        readdirSync(join(root, "packages", folder), { recursive: true, encoding: "utf8" })
          .filter((path) => path.endsWith(".ts"))
          .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
      )
      .map((path) => [path, read(`packages/${path}`).replace(/\/\*[^]*?\*\//g, "")])
  )

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

/** The cells of all table rows, without the header rows. A bar in a cell is written `\|`. */
export const rows = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = text.split("\n")
  return lines
    .filter((line, index) => line.startsWith("|") && !/^\|[\s|:-]+$/.test(lines[index + 1] ?? "") && !isRule(line))
    .map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll("\\|", "|")))
}

const isRule = (line: string) => /^\|[\s|:-]+$/.test(line)

/** The texts between backticks. */
export const codes = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)

export interface NamedTest {
  readonly title: string
  readonly file: string
}

/** `“title of the test” in `file``, as the pages write it. */
export const namedTests = (text: string): ReadonlyArray<NamedTest> =>
  [...text.matchAll(/“([^”]+)”\s+in\s+`([^`]+)`/g)].map(([, title = "", file = ""]) => ({
    title: title.replace(/\s+/g, " "),
    file
  }))

/** Whether a source declares a test or group with exactly that title: the title is the first argument of a call. */
const declares = (source: string, title: string): boolean =>
  new RegExp(`\\(\\s*["\`]${title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}["\`]`).test(source)

/** The citations whose file is missing, or declares no test or group with that title. */
export const missing = (all: ReadonlyArray<NamedTest>): ReadonlyArray<NamedTest> =>
  all.filter(({ file, title }) => !existsSync(join(root, file)) || !declares(read(file), title))

/** The anchors of a page as GitHub creates them: a repeated heading gets a number. */
const anchors = (page: string): ReadonlyArray<string> => {
  const slugs = [...page.replace(/^```[^]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    slugify(heading)
  )
  return slugs.map((slug, index) => {
    const before = slugs.slice(0, index).filter((other) => other === slug).length
    return before === 0 ? slug : `${slug}-${before}`
  })
}

/** The links of a page to a missing file or heading. Links with a scheme are not followed. */
export const deadLinks = (file: string, text: string): ReadonlyArray<string> => {
  const isDead = (link: string) => {
    const [path = "", anchor] = link.split("#")
    const target = path === "" ? file : path.startsWith("/") ? "" : join(file, "..", path)
    if (target === "" || (path !== "" && !existsSync(join(root, target)))) return true
    return anchor !== undefined && target.endsWith(".md") &&
      !anchors(path === "" ? text : read(target)).includes(anchor)
  }
  return [...text.replace(/^```[^]*?^```|`[^`\n]*`/gm, "").matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)/gm)]
    .map(([, inline, reference]) => inline ?? reference ?? "")
    .filter((link) => !/^[a-z]+:/.test(link) && isDead(link))
    .map((link) => `${file}: ${link}`)
}
