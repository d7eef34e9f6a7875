/** The files that pages link to, such as the sources of the recipes. Each becomes a page. */
import { statSync } from "node:fs"
import { posix } from "node:path"
import { root } from "../../workspace/workspace.mjs"
import { pages, text } from "../pages.mjs"

const linked = pages.flatMap((page) =>
  [...text(page).matchAll(/\]\(([^)#\s]+)/g)].map(([, link]) => posix.join(posix.dirname(page), link))
)

const files = [...new Set(linked)].filter((path) =>
  !/\.(md|svg|png)$/.test(path) && statSync(posix.join(root, path), { throwIfNoEntry: false })?.isFile()
)

export default {
  paths: () => files.map((path) => ({ params: { path }, content: `# ${path}\n\n<<< @/${path}\n` }))
}
