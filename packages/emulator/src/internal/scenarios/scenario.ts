/** How a scenario is written down. */
import type { Script } from "../../FaultModel.js"

export interface Scenario {
  readonly script: Script
  readonly expected: string
  readonly tls: boolean
}

export const scenario = (expected: string, script: Script): Scenario => ({ script, expected, tls: false })

/** One that means something over TLS only. */
export const overTls = (expected: string, script: Script): Scenario => ({ script, expected, tls: true })

/** The same outcome for each of many scripts; names get the prefix. */
export const alike = <Prefix extends string, Name extends string>(
  prefix: Prefix,
  expected: string,
  scripts: Record<Name, Script>
) =>
  Object.fromEntries(
    Object.entries<Script>(scripts).map(([name, script]) => [`${prefix}${name}`, scenario(expected, script)])
  ) as Record<`${Prefix}${Name}`, Scenario>
