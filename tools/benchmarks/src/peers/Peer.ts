/** A library that gets a token, set up as its documentation says. */
import { clientId, clientSecret } from "../sample.js"
import type { TokenServer } from "../tokenServer.js"

/** `ahead`: how many seconds before expiry a token of this server should be renewed, if the library can set that. */
export interface Setting {
  readonly server: TokenServer
  readonly ahead: number
}

export interface Client {
  /** One call in the form that is natural to the library. */
  readonly get: () => Promise<unknown>
  /** One call, and the token that a request would have carried. */
  readonly token: () => Promise<string>
  readonly close: () => Promise<void>
}

/** `caches`: whether it caches a token. `how`: describes the setup in one or two sentences. */
export interface Peer {
  readonly name: string
  readonly module?: string
  readonly caches: boolean
  readonly how: string
  readonly make: (setting: Setting) => Promise<Client>
}

export const nothingToClose = (): Promise<void> => Promise.resolve()

interface Granted {
  readonly access_token: string
  readonly expires_in: number
}

/** Sends the token request, for libraries that leave it to their user. */
export const grant = async (tokenUrl: string): Promise<Granted> => {
  const response = await fetch(tokenUrl, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
  })
  if (!response.ok) throw new Error(`The token endpoint responded with ${response.status}.`)
  return await response.json() as Granted
}
