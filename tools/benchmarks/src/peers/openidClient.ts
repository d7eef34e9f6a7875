import * as openid from "openid-client"
import { clientId, clientSecret } from "../sample.js"
import { nothingToClose, type Peer } from "./Peer.js"

export const openidClient: Peer = {
  name: "openid-client",
  module: "openid-client",
  caches: false,
  how: "`clientCredentialsGrant(config)`, as its README shows. It keeps no token, by design: each call is a grant.",
  make: ({ server }) => {
    const config = new openid.Configuration(
      { issuer: server.origin, token_endpoint: server.tokenUrl },
      clientId,
      clientSecret
    )
    // Marked deprecated so that nobody uses it by accident; loopback has no https.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    openid.allowInsecureRequests(config)
    const get = () => openid.clientCredentialsGrant(config)
    return Promise.resolve({ get, token: async () => (await get()).access_token, close: nothingToClose })
  }
}
