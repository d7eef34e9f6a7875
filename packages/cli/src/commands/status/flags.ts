/** The flags of `store-api status`. */
import { common, type Flags, json } from "../../flags.js"

export const statusFlags = { ...json, ...common } as const satisfies Flags
