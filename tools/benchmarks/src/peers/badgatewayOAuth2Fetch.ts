import { OAuth2Client, OAuth2Fetch } from "@badgateway/oauth2-client"
import { clientId, clientSecret } from "../sample.js"
import { nothingToClose, type Peer } from "./Peer.js"

export const badgatewayOAuth2Fetch: Peer = {
  name: "@badgateway/oauth2-client",
  module: "@badgateway/oauth2-client",
  caches: true,
  how:
    "`OAuth2Fetch` with `getNewToken: () => client.clientCredentials()`, as its README shows. It has no margin before " +
    "the end to set.",
  make: ({ server }) => {
    const client = new OAuth2Client({
      server: server.origin,
      clientId,
      clientSecret,
      tokenEndpoint: server.tokenUrl,
      authenticationMethod: "client_secret_post"
    })
    const wrapper = new OAuth2Fetch({ client, getNewToken: () => client.clientCredentials() })
    const token = () => wrapper.getAccessToken()
    return Promise.resolve({ get: token, token, close: nothingToClose })
  }
}
