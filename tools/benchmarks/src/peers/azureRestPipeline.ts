import {
  bearerTokenAuthenticationPolicy,
  createEmptyPipeline,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient
} from "@azure/core-rest-pipeline"
import { grant, type Peer } from "./Peer.js"

// The policy refuses plain http; nothing is sent there, the transport is a stub.
const url = "https://api.store.example/"

const stub: HttpClient = {
  sendRequest: (request) => Promise.resolve({ request, status: 200, headers: createHttpHeaders() })
}

export const azureRestPipeline: Peer = {
  name: "@azure/core-rest-pipeline",
  module: "@azure/core-rest-pipeline",
  caches: true,
  how:
    "A pipeline of `bearerTokenAuthenticationPolicy` alone over a stub transport; the credential's `getToken` makes the " +
    "grant by `fetch`. Its margins (renewal from 2 minutes, waiting from 1 second before the end) cannot be set and are made " +
    "for longer lives than those here. A call is one request through the pipeline: the token is not to be had otherwise.",
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
            // Nobody awaits a renewal in the background: one that fails with the server gone would end the process.
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
