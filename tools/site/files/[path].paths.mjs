/** The files that pages link to, such as the sources of the recipes: each is a page of its own. */
import { fileAsPage, linkedFiles } from "../pages.mjs"

export default {
  paths: () => linkedFiles().map((path) => ({ params: { path }, content: fileAsPage(path) }))
}
