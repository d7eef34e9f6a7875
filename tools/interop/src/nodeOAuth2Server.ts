/** `@node-oauth/oauth2-server`: the framework issues and checks tokens, and a model in memory keeps them. */
import type { IncomingMessage, RequestListener } from "node:http"
import { text } from "node:stream/consumers"
import OAuth2Server from "@node-oauth/oauth2-server"
import { Effect, Option, Redacted } from "effect"
import {
  type AuthorizationServer,
  credentials,
  guardedResource,
  packageVersion,
  serve,
  tokenPath
} from "./AuthorizationServer.js"

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

/** The framework reads the request and writes the headers and the response, errors included. */
const toOAuth = (request: IncomingMessage, body = "") =>
  new OAuth2Server.Request({
    headers: request.headers as Record<string, string>,
    method: request.method ?? "",
    query: {},
    body: Object.fromEntries(new URLSearchParams(body))
  })

const refusal = (error: unknown) =>
  error instanceof OAuth2Server.OAuthError
    ? { status: error.code, body: { error: error.name, error_description: error.message } }
    : { status: 500, body: { error: "server_error" } }

const tokenEndpoint = (server: OAuth2Server): RequestListener => async (request, response) => {
  const answer = new OAuth2Server.Response()
  const { body, status } = await server.token(toOAuth(request, await text(request)), answer)
    .then(() => ({ status: answer.status ?? 500, body: answer.body as unknown }), refusal)
  response.writeHead(status, { ...answer.headers, "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

const guard = (server: OAuth2Server) => (request: IncomingMessage) =>
  Effect.promise(async () => {
    const answer = new OAuth2Server.Response()
    try {
      await server.authenticate(toOAuth(request), answer)
      return Option.none()
    } catch (error) {
      if (error instanceof OAuth2Server.OAuthError && error.code === 401) {
        return Option.some(String(answer.get("WWW-Authenticate") ?? ""))
      }
      throw error
    }
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
      const { requests, url } = yield* serve(() => tokenEndpoint(server), tokenPath)
      return {
        ...yield* guardedResource(guard(server)),
        authUrl: url,
        tokenRequests: requests,
        revoke: (token) => Effect.sync(() => void tokens.delete(token))
      }
    })
}
