/**
 * Runs a tool of the workspace, after an installation if one is needed:
 *
 *   node scripts/tool.mjs eslint .
 */
import "./require-node.mjs"
import { install, tool } from "./workspace.mjs"

const [name, ...args] = process.argv.slice(2)

install()
tool(name, args)
