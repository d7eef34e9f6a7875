/** The flags of `store-api check`. */
import { common, type Flags, json } from "../../flags.js"

export const checkFlags = { ...json, ...common } as const satisfies Flags
