import { createRequire } from "node:module"

const manifest: unknown = createRequire(import.meta.url)("../package.json")

/** Of this package. */
export const version: string = (manifest as { readonly version: string }).version
