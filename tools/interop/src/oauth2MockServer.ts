/** `oauth2-mock-server`: JWTs, which the resource verifies with the server's published keys. */
import { createPublicKey, type JsonWebKey, verify } from "node:crypto"
import { Effect } from "effect"
import { type MutableResponse, type MutableToken, OAuth2Server } from "oauth2-mock-server"
import { type AuthorizationServer, packageVersion, protectedResource, serve, tokenPath } from "./AuthorizationServer.js"

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

/** Fetches the only published key. Returns a check of the signature of a JWT, its issuer and its end. */
const jwtVerifier = (issuer: string) =>
  Effect.promise(async () => {
    const { keys: [jwk] } = await (await fetch(`${issuer}/jwks`)).json() as { readonly keys: readonly [JsonWebKey] }
    const key = createPublicKey({ key: jwk, format: "jwk" })
    return (token: string) => {
      const [header = "", payload = "", signature = ""] = token.split(".")
      if (!verify("sha256", Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, "base64url"))) return false
      const { exp, iss } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>
      return iss === issuer && Date.now() < Number(exp) * 1000
    }
  })

export const oauth2MockServer: AuthorizationServer = {
  name: "oauth2-mock-server",
  version: packageVersion("oauth2-mock-server"),
  checks: "verifies each JWT with the published keys (JWKS)",
  revocation: { offered: false, how: "none: its revocation endpoint responds, but the JWT stays valid" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const server = withLife(life)
      yield* Effect.promise(() => server.issuer.keys.generate("RS256"))
      const { requests, url } = yield* serve((url) => {
        server.issuer.url = url
        return server.service.requestHandler
      }, tokenPath)
      const accepts = yield* jwtVerifier(url)
      const resource = yield* protectedResource((token) => Effect.sync(() => accepts(token)))
      return { ...resource, authUrl: url, tokenRequests: requests }
    })
}
