/** The versions of the packages for Effect 4, and of what they depend on. */
import { catalog, readJson } from "../workspace/published.mjs"

const installed = readJson("tools/effect4/workspace/package.json").devDependencies

/** The Node and the ranges that the manifests for Effect 4 must have. */
export const effect4 = {
  node: ">=22.19",
  /** @type {Readonly<Record<string, string>>} */
  ranges: {
    ...catalog,
    "effect": installed.effect,
    "@effect/platform-node": installed["@effect/platform-node"]
  }
}

/** The version for Effect 4: the next major, with the same minor and patch. 0.0.0 counts as 1.0.0. */
export const effect4Version = (effect3) =>
  effect3.replace(/^\d+/, (major) => String(Math.max(Number(major), 1) + 1))
