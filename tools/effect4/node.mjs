/** A Node on which Effect 4's tests run: this one, or else one from npm. */
import { binaryOf, unsupported } from "../runtimes/binaries.mjs"

const numbers = (version) => version.split(".").map(Number)

const isAtLeast = (version, least) => {
  const [[major, minor], [leastMajor, leastMinor]] = [numbers(version), numbers(least)]
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}

/** The path of a Node of at least this version. */
export const nodeOf = async (least) => {
  if (isAtLeast(process.versions.node, least)) return process.execPath
  const reason = unsupported()
  if (reason !== undefined) throw new Error(`Node ${least} or newer is needed. ${reason}`)
  return binaryOf("node24")
}
