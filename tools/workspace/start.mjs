/** `npm start`: installs and builds what is missing, then runs the demo in this process. */
import "./require-node.mjs"
import { build, install } from "./workspace.mjs"

install()
build("examples/tsconfig.src.json")

import("../../examples/dist/demo.js")
