/** The flags of `store-api call`. */
import { cacheFlags, commonFlags, type Flags } from "../../flags.js"

export const callFlags = {
  method: { value: "METHOD", alias: "X", text: "Default: GET, or POST with --data" },
  data: { value: "DATA", alias: "d", text: "Body; @PATH reads a file, @- or - stdin" },
  header: {
    value: "HEADER",
    alias: "H",
    many: true,
    text: "Header of the request: 'Name: value'"
  },
  include: { alias: "i", text: "Print status and headers before the body" },
  output: { value: "PATH", alias: "o", text: "Write the body to this file; - is stdout" },
  fail: { alias: "f", text: "Exit with code 7 for a status of 300 or more" },
  timeout: { value: "TIME", text: "Longest time for the call, such as 500ms or 30s" },
  ...cacheFlags,
  ...commonFlags
} as const satisfies Flags
