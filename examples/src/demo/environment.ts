/** Checks the `STORE_API_*` variables: whether any is set, and whether they suffice for the real service. */
import { Effect } from "effect"
import { DemoError } from "./failure.js"

const required = ["STORE_API_AUTH_URL", "STORE_API_URL", "STORE_API_CLIENT_ID", "STORE_API_CLIENT_SECRET"]

const names = Effect.sync(() => Object.keys(process.env).filter((name) => name.startsWith("STORE_API_")))

/**
 * Whether any variable of the service is set. If only some are, that is a mistake, not a reason to use the emulator.
 */
export const isConfigured = Effect.map(names, (names) => names.length > 0)

/** Fails with all variables that are missing or empty. Also names those that are set, because one may be mistyped. */
export const checked = Effect.flatMap(names, (names) => {
  const missing = required.filter((name) => !names.includes(name))
  const empty = required.filter((name) => process.env[name] === "")
  const found = names.filter((name) => !empty.includes(name))
  if (missing.length + empty.length === 0) return Effect.void
  const lacking = [verb(missing, "missing"), verb(empty, "empty")].filter((text) => text !== "").join(", and ")
  const because = found.length === 0 ? "" : `${verb(found, "set")}, so the real service is used, but `
  return Effect.fail(
    new DemoError({
      message: `${because}${lacking}: set them, or unset all STORE_API_* variables to use the emulator.`
    })
  )
})

const verb = (names: ReadonlyArray<string>, state: string) =>
  names.length === 0 ? "" : `${list(names)} ${names.length === 1 ? "is" : "are"} ${state}`

const list = (names: ReadonlyArray<string>) => names.join(", ").replace(/, ([^,]*)$/, " and $1")
