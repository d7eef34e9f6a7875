/** The flags of `store-api token`. */
import { caching, common, type Flags } from "../../flags.js"

export const tokenFlags = {
  format: {
    value: "FORMAT",
    choices: ["token", "header", "json"],
    text: "token (default), header or json"
  },
  ...caching,
  ...common
} as const satisfies Flags
