import {
  bearerTokenAuthenticationPolicy,
  createEmptyPipeline,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient
} from "@azure/core-rest-pipeline"
import { OAuth2Client, OAuth2Fetch } from "@badgateway/oauth2-client"
import { IdentityPoolClient, OAuth2Client as GoogleClient } from "google-auth-library"
import * as openid from "openid-client"
import { type AccessToken, ClientCredentials } from "simple-oauth2"
import { clientId, clientSecret } from "../sample.js"
import { grant, nothingToClose, type Peer } from "./Peer.js"

export const openidClient: Peer = {
  name: "openid-client",
  module: "openid-client",
  caches: false,
  how:
    "`clientCredentialsGrant(config)`, as its README shows. It caches no token, by design: each call sends a token request.",
  make: ({ server }) => {
    const config = new openid.Configuration(
      { issuer: server.origin, token_endpoint: server.tokenUrl },
      clientId,
      clientSecret
    )
    // Deprecated to prevent accidental use; loopback has no https.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    openid.allowInsecureRequests(config)
    const get = () => openid.clientCredentialsGrant(config)
    return Promise.resolve({ get, token: async () => (await get()).access_token, close: nothingToClose })
  }
}

// The policy refuses plain http. The transport is a stub, so nothing is sent there.
const url = "https://api.store.example/"

const stub: HttpClient = {
  sendRequest: (request) => Promise.resolve({ request, status: 200, headers: createHttpHeaders() })
}

export const azureRestPipeline: Peer = {
  name: "@azure/core-rest-pipeline",
  module: "@azure/core-rest-pipeline",
  caches: true,
  how:
    "A pipeline of `bearerTokenAuthenticationPolicy` alone over a stub transport; the credential's `getToken` sends " +
    "the token request with `fetch`. Its margins (renewal 2 minutes before expiry, waiting 1 second before) cannot be set, " +
    "and are meant for longer lifetimes than those here. A call is one request through the pipeline, because the token is " +
    "not available in any other way.",
  make: ({ server }) => {
    let closed = false
    const pipeline = createEmptyPipeline()
    pipeline.addPolicy(bearerTokenAuthenticationPolicy({
      scopes: "invented-scope",
      credential: {
        getToken: async () => {
          try {
            const { access_token, expires_in } = await grant(server.tokenUrl)
            return { token: access_token, expiresOnTimestamp: Date.now() + expires_in * 1000 }
          } catch (error) {
            // No caller awaits a background renewal, so a failure after the server has stopped would end the process.
            if (closed) return await new Promise<never>(() => undefined)
            throw error
          }
        }
      }
    }))
    const request = createPipelineRequest({ url })
    return Promise.resolve({
      get: () => pipeline.sendRequest(stub, request),
      token: async () => {
        const { request } = await pipeline.sendRequest(stub, createPipelineRequest({ url }))
        return (request.headers.get("authorization") ?? "").replace("Bearer ", "")
      },
      close: () => {
        closed = true
        return Promise.resolve()
      }
    })
  }
}

export const badgatewayOAuth2Fetch: Peer = {
  name: "@badgateway/oauth2-client",
  module: "@badgateway/oauth2-client",
  caches: true,
  how:
    "`OAuth2Fetch` with `getNewToken: () => client.clientCredentials()`, as its README shows. It has no margin before " +
    "expiry.",
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

const accessToken = (token: string | null | undefined): string => token ?? ""

export const googleIdentityPool: Peer = {
  name: "google-auth-library IdentityPoolClient",
  module: "google-auth-library",
  caches: true,
  how:
    "`IdentityPoolClient` (external account), whose `token_url` may be any endpoint, and which shares one request; " +
    "`eagerRefreshThresholdMillis` 5 minutes (its default), or a quarter of a shorter lifetime.",
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
  how: "`OAuth2Client` with a `refreshHandler` that sends the token request with `fetch`, as its README shows; " +
    "`eagerRefreshThresholdMillis` 5 minutes (its default), or a quarter of a shorter lifetime.",
  make: ({ ahead, server }) => {
    const client = new GoogleClient({ eagerRefreshThresholdMillis: ahead * 1000 })
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

export const simpleOauth2: Peer = {
  name: "simple-oauth2",
  module: "simple-oauth2",
  caches: true,
  how:
    "`ClientCredentials` and the pattern of its README: `if (accessToken.expired(window))`, it requests a new one inside " +
    "`try`, and keeps the old one if that fails; the window is the README's 300 seconds, or a quarter of a shorter lifetime.",
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
          // As in its README: report the error and keep the token.
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
