import { IdentityPoolClient, OAuth2Client } from "google-auth-library"
import { clientId, clientSecret } from "../sample.js"
import { grant, nothingToClose, type Peer } from "./Peer.js"

const accessToken = (token: string | null | undefined): string => token ?? ""

export const googleIdentityPool: Peer = {
  name: "google-auth-library IdentityPoolClient",
  module: "google-auth-library",
  caches: true,
  how:
    "`IdentityPoolClient` (external account), the class whose `token_url` may be any endpoint and which shares one " +
    "request; `eagerRefreshThresholdMillis` 5 minutes (its default), or a quarter of a shorter life.",
  make: ({ ahead, server }) => {
    const client = new IdentityPoolClient({
      type: "external_account",
      audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/invented/providers/invented",
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      subject_token_supplier: { getSubjectToken: () => Promise.resolve("invented-subject-token") },
      token_url: server.tokenUrl,
      client_id: clientId,
      client_secret: clientSecret,
      eagerRefreshThresholdMillis: ahead * 1000
    })
    return Promise.resolve({
      get: () => client.getAccessToken(),
      token: async () => accessToken((await client.getAccessToken()).token),
      close: nothingToClose
    })
  }
}

export const googleRefreshHandler: Peer = {
  name: "google-auth-library OAuth2Client",
  module: "google-auth-library",
  caches: true,
  how: "`OAuth2Client` with a `refreshHandler` that makes the grant by `fetch`, as its README shows; " +
    "`eagerRefreshThresholdMillis` 5 minutes (its default), or a quarter of a shorter life.",
  make: ({ ahead, server }) => {
    const client = new OAuth2Client({ eagerRefreshThresholdMillis: ahead * 1000 })
    client.refreshHandler = async () => {
      const { access_token, expires_in } = await grant(server.tokenUrl)
      return { access_token, expiry_date: Date.now() + expires_in * 1000 }
    }
    return Promise.resolve({
      get: () => client.getAccessToken(),
      token: async () => accessToken((await client.getAccessToken()).token),
      close: nothingToClose
    })
  }
}
