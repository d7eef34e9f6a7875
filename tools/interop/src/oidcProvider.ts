/** `oidc-provider`: opaque tokens, and a resource that introspects each of them over HTTP. */
import { generateKeyPairSync } from "node:crypto"
import { Effect } from "effect"
import type { Configuration } from "oidc-provider"
import Provider from "oidc-provider"
import {
  type AuthorizationServer,
  credentials,
  form,
  introspecting,
  packageVersion,
  rawClient,
  resourceServer,
  serve,
  standardEndpoints,
  tokenPath
} from "./AuthorizationServer.js"

const configuration = (life: number): Configuration => ({
  clients: [credentials, resourceServer, rawClient].map((client) => ({
    ...form(client),
    token_endpoint_auth_method: "client_secret_post",
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: []
  })),
  routes: { token: tokenPath, introspection: "/introspection", revocation: "/revocation" },
  ttl: { ClientCredentials: life },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === resourceServer.clientId },
    revocation: { enabled: true, allowedPolicy: (_, client, token) => client.clientId === token.clientId }
  },
  // Only id tokens are signed, and no test requests one. Without a key, the server logs at each start that it made one.
  jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] }
})

export const oidcProvider: AuthorizationServer = {
  name: "oidc-provider",
  version: packageVersion("oidc-provider"),
  ...standardEndpoints,
  start: ({ life }) =>
    Effect.gen(function*() {
      const { requests, url } = yield* serve((url) => {
        const handle = new Provider(url, configuration(life)).callback()
        return (request, response) => void handle(request, response)
      }, tokenPath)
      const resource = yield* introspecting(`${url}/introspection`, `${url}/revocation`)
      return { ...resource, authUrl: url, tokenRequests: requests }
    })
}
