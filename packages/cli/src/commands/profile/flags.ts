/** The flags of `store-api profile add`. */
import { common, type Flags } from "../../flags.js"

export const addFlags = {
  "force": { text: "Replace a profile of this name" },
  "no-verify": { text: "Do not request a token with the settings" },
  ...common
} as const satisfies Flags
