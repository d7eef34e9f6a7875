/** `npm test`: installs and builds what is not there yet, checks all types, runs the tests. */
import "./require-node.mjs"
import { build, install, tool } from "./workspace.mjs"

install()
build("tsconfig.json")
tool("vitest", ["run", ...process.argv.slice(2)])
