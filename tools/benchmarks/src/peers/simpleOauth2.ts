import { type AccessToken, ClientCredentials } from "simple-oauth2"
import { clientId, clientSecret } from "../sample.js"
import { nothingToClose, type Peer } from "./Peer.js"

export const simpleOauth2: Peer = {
  name: "simple-oauth2",
  module: "simple-oauth2",
  caches: true,
  how:
    "`ClientCredentials` and the pattern of its README: `if (accessToken.expired(window))` a new one inside `try`, the " +
    "old one kept if that fails; the window is its 300 seconds, or a quarter of a shorter life.",
  make: ({ ahead, server }) => {
    const client = new ClientCredentials({
      client: { id: clientId, secret: clientSecret },
      auth: { tokenHost: server.origin, tokenPath: new URL(server.tokenUrl).pathname },
      options: { authorizationMethod: "body" }
    })
    let accessToken: AccessToken | undefined
    const get = async () => {
      if (accessToken === undefined || accessToken.expired()) {
        accessToken = await client.getToken({})
      } else if (accessToken.expired(ahead)) {
        try {
          accessToken = await client.getToken({})
        } catch {
          // As in its README: told, and the token kept.
        }
      }
      return accessToken
    }
    return Promise.resolve({
      get,
      token: async () => String((await get()).token["access_token"]),
      close: nothingToClose
    })
  }
}
