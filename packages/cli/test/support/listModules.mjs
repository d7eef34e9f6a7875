/** `node --import` this to have the addresses of all modules written to the file that LIST_OF_MODULES names. */
import { appendFileSync, writeFileSync } from "node:fs"
import { register } from "node:module"
import { isMainThread } from "node:worker_threads"

if (isMainThread) {
  writeFileSync(process.env.LIST_OF_MODULES, "")
  register(import.meta.url) // the hooks run in a thread of their own
}

export const load = (url, context, next) => {
  appendFileSync(process.env.LIST_OF_MODULES, `${url}\n`)
  return next(url, context)
}
