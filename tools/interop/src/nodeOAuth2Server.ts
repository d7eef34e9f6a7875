/** `@node-oauth/oauth2-server`: the framework issues and checks tokens, and a model in memory keeps them. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import OAuth2Server from "@node-oauth/oauth2-server"
import { Effect, Redacted } from "effect"
import type { AuthorizationServer, Credentials } from "./AuthorizationServer.js"
import { guardedResource, serveTokens, tokenPath } from "./loopback.js"
import { packageVersion } from "./packageVersion.js"

const credentials: Credentials = {
  clientId: "interop-client",
  clientSecret: Redacted.make("an-invented-secret-of-the-client")
}

const client: OAuth2Server.Client = { id: credentials.clientId, grants: ["client_credentials"] }

const model = (tokens: Map<string, OAuth2Server.Token>): OAuth2Server.ClientCredentialsModel => ({
  getClient: (id, secret) =>
    Promise.resolve(id === client.id && secret === Redacted.value(credentials.clientSecret) && client),
  getUserFromClient: ({ id }) => Promise.resolve({ id }),
  saveToken: (saved, client, user) => {
    const token = { ...saved, client, user }
    tokens.set(token.accessToken, token)
    return Promise.resolve(token)
  },
  getAccessToken: (value) => Promise.resolve(tokens.get(value))
})

const bodyOf = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString("utf8")))
}

/** The framework reads the request and writes the headers and the response, errors included. */
const toOAuth = (request: IncomingMessage, body: object) =>
  new OAuth2Server.Request({
    headers: request.headers as Record<string, string>,
    method: request.method ?? "",
    query: {},
    body
  })

const refusal = (error: unknown) =>
  error instanceof OAuth2Server.OAuthError
    ? { status: error.code, body: { error: error.name, error_description: error.message } }
    : { status: 500, body: { error: "server_error" } }

const grant = (server: OAuth2Server) => async (request: IncomingMessage, response: ServerResponse) => {
  const answer = new OAuth2Server.Response()
  const { body, status } = await server.token(toOAuth(request, await bodyOf(request)), answer)
    .then(() => ({ status: answer.status ?? 500, body: answer.body as unknown }), refusal)
  response.writeHead(status, { ...answer.headers, "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

const tokenEndpoint = (server: OAuth2Server): RequestListener => (request, response) => {
  if (request.url === tokenPath) void grant(server)(request, response)
  else response.writeHead(404).end()
}

const guard = (server: OAuth2Server) => (request: IncomingMessage) =>
  Effect.suspend(() => {
    const answer = new OAuth2Server.Response()
    return Effect.tryPromise(() => server.authenticate(toOAuth(request, {}), answer)).pipe(
      Effect.match({
        onFailure: ({ cause }) => ({
          status: cause instanceof OAuth2Server.OAuthError ? cause.code : 500,
          challenge: String(answer.get("WWW-Authenticate") ?? "")
        }),
        onSuccess: () => ({ status: 200, challenge: "" })
      })
    )
  })

export const nodeOAuth2Server: AuthorizationServer = {
  name: "@node-oauth/oauth2-server",
  version: packageVersion("@node-oauth/oauth2-server"),
  checks: "`authenticate` of the framework, at each call",
  revocation: { offered: true, how: "the model deletes the token; the framework has no revocation endpoint" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const tokens = new Map<string, OAuth2Server.Token>()
      const server = new OAuth2Server({ model: model(tokens), accessTokenLifetime: life })
      const { tokenRequests, url } = yield* serveTokens(() => Effect.succeed(tokenEndpoint(server)))
      const resource = yield* guardedResource(guard(server))
      return {
        ...resource,
        authUrl: url,
        credentials,
        tokenRequests,
        revoke: (token) => Effect.sync(() => void tokens.delete(Redacted.value(token)))
      }
    })
}
