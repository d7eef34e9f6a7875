/** `oidc-provider`: opaque tokens, and a resource that introspects each of them over HTTP. */
import { generateKeyPairSync } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { ClientMetadata, Configuration } from "oidc-provider"
import Provider from "oidc-provider"
import type { AuthorizationServer, Credentials } from "./AuthorizationServer.js"
import { protectedResource, serveTokens, tokenPath } from "./loopback.js"
import { packageVersion } from "./packageVersion.js"
import { postFormOk } from "./wire.js"

const credentials: Credentials = {
  clientId: "interop-client",
  clientSecret: Redacted.make("an-invented-secret-of-the-client")
}

/** The resource's own client. It introspects tokens and uses none. */
const resourceServer: Credentials = {
  clientId: "interop-resource",
  clientSecret: Redacted.make("an-invented-secret-of-the-resource")
}

/** Its secret holds characters that a form encodes and the specification sends raw. */
export const rawClient: Credentials = {
  clientId: "interop-raw-client",
  clientSecret: Redacted.make("an+invented%20secret")
}

const metadata = ({ clientId, clientSecret }: Credentials): ClientMetadata => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret),
  token_endpoint_auth_method: "client_secret_post",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: []
})

const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

const configuration = (life: number): Configuration => ({
  clients: [credentials, resourceServer, rawClient].map(metadata),
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
  checks: "introspects each token over HTTP (RFC 7662)",
  revocation: { offered: true, how: "revocation endpoint (RFC 7009)" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const { tokenRequests, url } = yield* serveTokens((url) =>
        Effect.sync(() => {
          const handle = new Provider(url, configuration(life)).callback()
          return (request, response) => void handle(request, response)
        })
      )
      const resource = yield* protectedResource((token) =>
        Effect.map(
          postFormOk(`${url}/introspection`, { ...form(resourceServer), token }),
          (body) => (JSON.parse(body) as { readonly active: boolean }).active
        )
      )
      return {
        ...resource,
        authUrl: url,
        credentials,
        tokenRequests,
        revoke: (token) =>
          Effect.asVoid(postFormOk(`${url}/revocation`, { ...form(credentials), token: Redacted.value(token) }))
      }
    })
}
