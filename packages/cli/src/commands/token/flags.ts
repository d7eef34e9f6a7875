/** The flags of `store-api token`. */
import { cacheFlags, commonFlags, type Flags } from "../../flags.js"

export const tokenFlags = {
  format: {
    value: "FORMAT",
    choices: ["token", "header", "json"],
    text: "token (default), header or json"
  },
  ...cacheFlags,
  ...commonFlags
} as const satisfies Flags
