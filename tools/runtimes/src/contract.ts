/** The contract that core keeps on every runtime with `fetch`. */
import type { Check } from "./Check.js"
import * as faults from "./checks/faults.js"
import * as life from "./checks/life.js"
import * as secrets from "./checks/secrets.js"

/** `certificates`: whether the runtime says when it is the certificate that is at fault. */
export const checks = ({ certificates }: { readonly certificates: boolean }): ReadonlyArray<Check> => [
  ...life.checks,
  ...faults.checks,
  faults.certificate(certificates),
  ...secrets.checks
]
