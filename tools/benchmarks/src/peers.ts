/** Our library and others that get a token, each set up as its documentation says. */
import * as azure from "@azure/core-rest-pipeline"
import { OAuth2Client, OAuth2Fetch } from "@badgateway/oauth2-client"
import {
  type AccessToken,
  type AccessTokenError,
  AccessTokenProvider,
  ClientCredentials,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Cache, Effect, Exit, Layer, ManagedRuntime, Redacted } from "effect"
import { OAuth2Client as GoogleClient } from "google-auth-library"
import * as simple from "simple-oauth2"
import type { TokenServer } from "./tokenServer.js"

/** `ahead`: how many seconds before expiry a token of this server should be renewed, if the library can set that. */
interface Setting {
  readonly server: TokenServer
  readonly ahead: number
}

export interface Client {
  /** One call in the form that is natural to the library. */
  readonly get: () => Promise<unknown>
  /** One call, and the token that a request would have carried. */
  readonly token: () => Promise<string>
  readonly close?: () => Promise<void> | void
}

/** tools/benchmarks/README.md describes each setup. */
export interface Peer {
  readonly name: string
  readonly make: (setting: Setting) => Client | Promise<Client>
}

const clientId = "invented-client"
const clientSecret = "invented-secret"

type Get = Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

const clientOf = (get: Get, close: () => Promise<void>): Client => ({
  get: () => Effect.runPromise(get),
  token: async () => Redacted.value((await Effect.runPromise(get)).value),
  close
})

/** The same request as ours, `TokenEndpoint`, behind another cache. */
const overEndpoint = async (
  { server }: Setting,
  cached: (acquire: Get) => Effect.Effect<Get>
): Promise<Client> => {
  const credentials = ClientCredentials.make({
    clientId,
    clientSecret: Redacted.make(clientSecret)
  })
  const endpoint = TokenEndpoint.layer({ authUrl: server.origin, credentials })
  const runtime = ManagedRuntime.make(
    Layer.provide(endpoint, NodeHttp.layer({ proxy: "none" }))
  )
  const source = await runtime.runPromise(TokenSource.TokenSource)
  const get = await runtime.runPromise(cached(source.acquire(TokenSource.missing)))
  return clientOf(get, () => runtime.dispose())
}

/** Sends the token request, for libraries that leave it to their user. */
const grant = async (
  { tokenUrl }: TokenServer
): Promise<{ readonly token: string; readonly expiresAt: number }> => {
  const response = await fetch(tokenUrl, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret
    })
  })
  if (!response.ok) throw new Error(`The token endpoint responded with ${response.status}.`)
  const granted = await response.json() as {
    readonly access_token: string
    readonly expires_in: number
  }
  return { token: granted.access_token, expiresAt: Date.now() + granted.expires_in * 1000 }
}

// The policy refuses plain http. The transport is a stub, so nothing is sent there.
const url = "https://api.store.example/"

const stub: azure.HttpClient = {
  sendRequest: (request) =>
    Promise.resolve({ request, status: 200, headers: azure.createHttpHeaders() })
}

export const store: Peer = {
  name: "@store-api/core",
  make: async ({ server: { origin } }) => {
    const secret = { clientId, clientSecret: Redacted.make(clientSecret) }
    const runtime = ManagedRuntime.make(
      NodeStoreAuth.layer({
        authUrl: origin,
        apiUrl: origin,
        ...secret,
        http: { proxy: "none" }
      })
    )
    const provider = await runtime.runPromise(AccessTokenProvider.AccessTokenProvider)
    return clientOf(provider.get, () => runtime.dispose())
  }
}

const peer = (name: string, make: Peer["make"]): Peer => ({ name, make })

/** Our library first. */
export const peers: ReadonlyArray<Peer> = [
  store,
  peer("Effect Cache", (setting) =>
    overEndpoint(setting, (acquire) =>
      Effect.map(
        Cache.makeWith({
          capacity: 1,
          lookup: (_: "token") => acquire,
          timeToLive: Exit.match({
            onFailure: () => 0,
            onSuccess: (token) =>
              Math.max(token.expiresAt.epochMillis - Date.now() - setting.ahead * 1000, 0)
          })
        }),
        (cache) => cache.get("token")
      ))),
  peer(
    "Effect.cachedWithTTL",
    (setting) =>
      overEndpoint(
        setting,
        Effect.cachedWithTTL(`${setting.server.life - setting.ahead} seconds`)
      )
  ),
  peer("@azure/core-rest-pipeline", ({ server }) => {
    let closed = false
    const getToken = async () => {
      try {
        const { expiresAt, token } = await grant(server)
        return { token, expiresOnTimestamp: expiresAt }
      } catch (error) {
        // No caller awaits a background renewal, so a failure after the server has stopped would end the process.
        if (closed) return await new Promise<never>(() => undefined)
        throw error
      }
    }
    const pipeline = azure.createEmptyPipeline()
    pipeline.addPolicy(
      azure.bearerTokenAuthenticationPolicy({
        scopes: "invented-scope",
        credential: { getToken }
      })
    )
    const request = azure.createPipelineRequest({ url })
    return {
      get: () => pipeline.sendRequest(stub, request),
      token: async () => {
        const { request } = await pipeline.sendRequest(
          stub,
          azure.createPipelineRequest({ url })
        )
        return (request.headers.get("authorization") ?? "").replace("Bearer ", "")
      },
      close: () => {
        closed = true
      }
    }
  }),
  peer("@badgateway/oauth2-client", ({ server: { origin, tokenUrl } }) => {
    const client = new OAuth2Client({
      server: origin,
      clientId,
      clientSecret,
      tokenEndpoint: tokenUrl,
      authenticationMethod: "client_secret_post"
    })
    const wrapper = new OAuth2Fetch({ client, getNewToken: () => client.clientCredentials() })
    const token = () => wrapper.getAccessToken()
    return { get: token, token }
  }),
  peer("google-auth-library", ({ ahead, server }) => {
    const client = new GoogleClient({ eagerRefreshThresholdMillis: ahead * 1000 })
    client.refreshHandler = async () => {
      const { expiresAt, token } = await grant(server)
      return { access_token: token, expiry_date: expiresAt }
    }
    return {
      get: () => client.getAccessToken(),
      token: async () => (await client.getAccessToken()).token ?? ""
    }
  }),
  peer("simple-oauth2", ({ ahead, server: { origin, tokenUrl } }) => {
    const client = new simple.ClientCredentials({
      client: { id: clientId, secret: clientSecret },
      auth: { tokenHost: origin, tokenPath: new URL(tokenUrl).pathname },
      options: { authorizationMethod: "body" }
    })
    let accessToken: simple.AccessToken | undefined
    const get = async () => {
      if (accessToken === undefined || accessToken.expired()) {
        accessToken = await client.getToken({})
      } else if (accessToken.expired(ahead)) {
        // As in its README: report the error and keep the token.
        accessToken = await client.getToken({}).catch(() => accessToken)
      }
      return accessToken
    }
    return { get, token: async () => String((await get())?.token["access_token"]) }
  })
]
