/**
 * Exits with one sentence if Node is too old for this repository. It is imported first, and imports only modules that
 * an old Node also has.
 */
import { readFileSync } from "fs"

const { engines } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8")
)

const numbers = (version) => version.replace(/[^\d.]/g, "").split(".").map(Number)
const [major, minor = 0] = numbers(engines.node)
const [ownMajor, ownMinor] = numbers(process.versions.node)

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  process.stderr.write(
    "This needs Node " + major + "." + minor + " or newer, and this is " +
      process.versions.node +
      ": install a newer Node.\n"
  )
  process.exit(1)
}
