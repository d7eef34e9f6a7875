/** `oauth2-mock-server`: JWTs, which the resource verifies with the server's published keys. */
import { Effect, Redacted } from "effect"
import { type MutableResponse, type MutableToken, OAuth2Server } from "oauth2-mock-server"
import type { AuthorizationServer, Credentials } from "./AuthorizationServer.js"
import { jwtVerifier } from "./jwtVerifier.js"
import { protectedResource, serveTokens, tokenPath } from "./loopback.js"
import { packageVersion } from "./packageVersion.js"

/** The server does not check credentials; a user would have to configure these. */
const credentials: Credentials = {
  clientId: "interop-client",
  clientSecret: Redacted.make("an-invented-secret-of-the-client")
}

/** Its tokens are valid for an hour, which only its events can change. */
const withLife = (life: number) => {
  const server = new OAuth2Server(undefined, undefined, { endpoints: { token: tokenPath } })
  server.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
    payload.exp = payload.iat + life
  })
  server.service.on("beforeResponse", (response: MutableResponse) => {
    if (response.body !== "") response.body["expires_in"] = life
  })
  return server
}

export const oauth2MockServer: AuthorizationServer = {
  name: "oauth2-mock-server",
  version: packageVersion("oauth2-mock-server"),
  checks: "verifies each JWT with the published keys (JWKS)",
  revocation: { offered: false, how: "none: its revocation endpoint responds, but the JWT stays valid" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const server = withLife(life)
      yield* Effect.promise(() => server.issuer.keys.generate("RS256"))
      const { tokenRequests, url } = yield* serveTokens((url) =>
        Effect.sync(() => {
          server.issuer.url = url
          return server.service.requestHandler
        })
      )
      const accepts = yield* jwtVerifier(`${url}/jwks`, url)
      return { ...yield* protectedResource(accepts), authUrl: url, credentials, tokenRequests }
    })
}
