/** The scenarios of the emulator by the kind of client that they need. */
import { Scenario } from "@store-api/emulator"

/** Whether a scenario needs a client with a key, for proofs (RFC 9449) or assertions (RFC 7523). */
export const needsKey = (name: Scenario.Name): boolean => {
  const { clientAuthentication, dpop } = Scenario.all[name].options
  return clientAuthentication !== undefined || dpop !== undefined
}
