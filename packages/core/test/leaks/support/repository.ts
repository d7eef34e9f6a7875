/** The files of the repository that tests read. */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../../../../../", import.meta.url))

export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The paths of the sources of a package, relative to the root. */
export const sourcesOf = (name: string): ReadonlyArray<string> =>
  readdirSync(join(root, "packages", name, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

export const packages: ReadonlyArray<string> = readdirSync(join(root, "packages"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory()).map(({ name }) => name)
