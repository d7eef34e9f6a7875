/** The flags of `store-api status`. */
import { commonFlags, type Flags, jsonFlag } from "../../flags.js"

export const statusFlags = { ...jsonFlag, ...commonFlags } as const satisfies Flags
