/** The flags of `store-api check`. */
import { commonFlags, type Flags, jsonFlag } from "../../flags.js"

export const checkFlags = { ...jsonFlag, ...commonFlags } as const satisfies Flags
