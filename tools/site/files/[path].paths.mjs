/** The files that pages link to, such as the sources of the recipes. Each becomes a page. */
import { statSync } from "node:fs"
import { posix } from "node:path"
import { root } from "../../workspace/workspace.mjs"
import { pages, text } from "../pages.mjs"

const linked = pages.flatMap((page) =>
  [...text(page).matchAll(/\]\(([^)#\s]+)/g)].map(([, link]) =>
    posix.join(posix.dirname(page), link)
  )
)

const files = [...new Set(linked)].filter((path) =>
  !/\.(md|svg|png)$/.test(path) &&
  statSync(posix.join(root, path), { throwIfNoEntry: false })?.isFile()
)

export default {
  // The site shows a program in the text of a page for both majors, and an included file as it is.
  paths: () =>
    files.map((path) => {
      const code = /^examples\/(src|test)\/.*\.ts$/.test(path)
        ? `\`\`\`ts\n${text(path)}\`\`\``
        : `<<< @/${path}`
      return { params: { path }, content: `# ${path}\n\n${code}\n` }
    })
}
