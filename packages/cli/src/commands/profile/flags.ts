/** The flags of `store-api profile add`. */
import { commonFlags, type Flags } from "../../flags.js"

export const addFlags = {
  "force": { text: "Replace a profile of this name" },
  "no-verify": { text: "Do not request a token with the settings" },
  ...commonFlags
} as const satisfies Flags
