/** The flags of `store-api run`. */
import { caching, common, type Flags } from "../../flags.js"

export const runFlags = { ...caching, ...common } as const satisfies Flags
