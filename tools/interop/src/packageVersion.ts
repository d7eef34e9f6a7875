/** The version of an installed package, by its own manifest: not every package exports that. */
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

export const packageVersion = (name: string): string => {
  // Beside `src` and `dist` alike.
  const manifest = fileURLToPath(new URL(`../node_modules/${name}/package.json`, import.meta.url))
  if (!existsSync(manifest)) throw new Error(`${name} is not installed`)
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version
}
