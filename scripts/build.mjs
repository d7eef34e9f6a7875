/**
 * `npm run build` (the packages and the examples) and `npm run check` (the tests too): compiles a project. With
 * `-- --force` from nothing.
 */
import "./require-node.mjs"
import { build, install } from "./workspace.mjs"

const [project, ...options] = process.argv.slice(2)

install()
build(project, options)
