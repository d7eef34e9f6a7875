/** The flags of `store-api run`. */
import { cacheFlags, commonFlags, type Flags } from "../../flags.js"

export const runFlags = { ...cacheFlags, ...commonFlags } as const satisfies Flags
