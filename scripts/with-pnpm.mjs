/**
 * Runs the pnpm that package.json pins:
 *
 *   node scripts/with-pnpm.mjs add --save-dev some-package
 */
import "./require-node.mjs"
import { pnpm } from "./workspace.mjs"

pnpm(process.argv.slice(2))
