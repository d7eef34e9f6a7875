/** The contract that core satisfies on every runtime with `fetch`. */
import type { Check } from "./Check.js"
import * as faults from "./checks/faults.js"
import * as life from "./checks/life.js"
import * as secrets from "./checks/secrets.js"

/** `certificates`: whether the runtime reports that a certificate caused a failure. */
export const checks = ({ certificates }: { readonly certificates: boolean }): ReadonlyArray<Check> => [
  ...life.checks,
  ...faults.checks(certificates),
  ...secrets.checks
]
