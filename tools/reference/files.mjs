/** The pages as files in docs/reference. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { root } from "../workspace/workspace.mjs"
import { read } from "./model.mjs"
import { render } from "./pages.mjs"

const folder = join(root, "docs", "reference")

/** What is there now, by path. */
const present = () =>
  new Map(
    existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .map((path) => [path.slice(folder.length + 1).replaceAll("\\", "/"), readFileSync(path, "utf8")])
      : []
  )

/** Which pages differ from these, are missing, or are nobody's. */
export const outdated = (pages = render(read())) => {
  const there = present()
  return [...new Set([...pages.keys(), ...there.keys()])].filter((path) => pages.get(path) !== there.get(path)).sort()
}

/** Writes all pages anew; answers how many they are. */
export const write = () => {
  const pages = render(read())
  rmSync(folder, { recursive: true, force: true })
  for (const [path, text] of pages) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return pages.size
}
