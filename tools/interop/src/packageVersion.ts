/** The version of an installed package, by its own manifest: not every package exports that. */
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

export const packageVersion = (name: string): string => {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  const manifest = folders.map((folder) => join(folder, name, "package.json")).find(existsSync)
  if (manifest === undefined) throw new Error(`${name} is not installed`)
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version
}
