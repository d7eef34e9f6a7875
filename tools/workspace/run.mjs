/**
 * Runs a tool of the workspace and installs the workspace first if needed:
 *
 *   node tools/workspace/run.mjs eslint .
 *
 * `build` is the compiler with the projects to compile, `pnpm` the version that package.json pins, and `start` builds
 * the examples and runs the demo in this process.
 */
import "./require-node.mjs"
import { build, install, pnpm, tool } from "./workspace.mjs"

const [name, ...args] = process.argv.slice(2)

if (name === "pnpm") pnpm(args)
else {
  install()
  if (name === "build") build(...args)
  else if (name === "start") {
    build("examples/tsconfig.src.json")
    import("../../examples/dist/demo.js")
  } else tool(name, args)
}
