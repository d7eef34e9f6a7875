/** Builds the site into site/dist; `base` is the path that it will be served under. */
import { fileURLToPath } from "node:url"
import { build as vitepress } from "vitepress"
import { problems } from "./pages.mjs"

const site = fileURLToPath(new URL(".", import.meta.url))

export const out = fileURLToPath(new URL("dist", import.meta.url))

export const build = async (base) => {
  const wrong = problems()
  if (wrong.length > 0) throw new Error(wrong.join("\n"))
  await vitepress(site, { base })
}
