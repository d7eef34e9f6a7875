/** The servers: three packages of npm in this process, and two of Debian, in Python and in C, in their own. */
import { execFileSync } from "node:child_process"
import { createPublicKey, generateKeyPairSync, type JsonWebKey, randomBytes, verify } from "node:crypto"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import Framework from "@node-oauth/oauth2-server"
import { Effect, Redacted } from "effect"
import { type MutableResponse, type MutableToken, OAuth2Server } from "oauth2-mock-server"
import Provider from "oidc-provider"
import {
  type AuthorizationServer,
  type Credentials,
  credentials,
  form,
  introspecting,
  protectedResource,
  rawClient,
  resourceServer,
  serve,
  tokenPath
} from "./AuthorizationServer.js"
import * as Program from "./Program.js"

/** Opaque tokens, and a resource that introspects each of them over HTTP. */
export const oidcProvider: AuthorizationServer = {
  name: "oidc-provider",
  start: (life) =>
    Effect.gen(function*() {
      const { requests, url } = yield* serve((url) => {
        const provider = new Provider(url, {
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
          // Only id tokens are signed, and no test requests one. Without a key, it logs at each start that it made one.
          jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] }
        })
        const handle = provider.callback()
        return (request, response) => void handle(request, response)
      }, tokenPath)
      const resource = yield* introspecting(`${url}/introspection`, `${url}/revocation`)
      return { ...resource, authUrl: url, tokenRequests: requests }
    })
}

/** A framework that issues and checks tokens. A model keeps them, and deletes those that are revoked. */
export const nodeOAuth2Server: AuthorizationServer = {
  name: "@node-oauth/oauth2-server",
  start: (life) =>
    Effect.gen(function*() {
      const tokens = new Map<string, Framework.Token>()
      const model: Framework.ClientCredentialsModel = {
        getClient: (id, secret) => {
          const isRight = id === credentials.clientId && secret === Redacted.value(credentials.clientSecret)
          return Promise.resolve(isRight && { id, grants: ["client_credentials"] })
        },
        getUserFromClient: ({ id }) => Promise.resolve({ id }),
        saveToken: (saved, client, user) => {
          const token = { ...saved, client, user }
          tokens.set(token.accessToken, token)
          return Promise.resolve(token)
        },
        getAccessToken: (value) => Promise.resolve(tokens.get(value))
      }
      const server = new Framework({ model, accessTokenLifetime: life })
      const { requests, url } = yield* serve(() => async (request, response) => {
        const asked = new Framework.Request({
          headers: request.headers as Record<string, string>,
          method: request.method ?? "",
          query: {},
          body: Object.fromEntries(new URLSearchParams(await text(request)))
        })
        const answer = new Framework.Response()
        const [status, body] = await server.token(asked, answer).then(
          () => [answer.status ?? 500, answer.body as unknown] as const,
          (error: unknown) =>
            error instanceof Framework.OAuthError
              ? [error.code, { error: error.name, error_description: error.message }] as const
              : [500, {}] as const
        )
        response.writeHead(status, { ...answer.headers, "content-type": "application/json" })
        response.end(JSON.stringify(body))
      }, tokenPath)
      const accepts = (token: string) => {
        const headers = { authorization: `Bearer ${token}` }
        const asked = new Framework.Request({ headers, method: "GET", query: {} })
        return server.authenticate(asked, new Framework.Response()).then(() => true, () => false)
      }
      return {
        ...yield* protectedResource(accepts),
        authUrl: url,
        tokenRequests: requests,
        revoke: (token) => Effect.sync(() => void tokens.delete(token))
      }
    })
}

/** JWTs, which the resource verifies with the server's only published key. */
export const oauth2MockServer: AuthorizationServer = {
  name: "oauth2-mock-server",
  start: (life) =>
    Effect.gen(function*() {
      const server = new OAuth2Server(undefined, undefined, { endpoints: { token: tokenPath } })
      // Its tokens are valid for an hour, which only its events can change.
      server.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
        payload.exp = payload.iat + life
      })
      server.service.on("beforeResponse", (response: MutableResponse) => {
        if (response.body !== "") response.body["expires_in"] = life
      })
      yield* Effect.promise(() => server.issuer.keys.generate("RS256"))
      const { requests, url } = yield* serve((url) => {
        server.issuer.url = url
        return server.service.requestHandler
      }, tokenPath)
      const { keys: [jwk] } = yield* Effect.promise(async () =>
        await (await fetch(`${url}/jwks`)).json() as { readonly keys: readonly [JsonWebKey] }
      )
      const key = createPublicKey({ key: jwk, format: "jwk" })
      const accepts = (token: string) => {
        const [header = "", payload = "", signature = ""] = token.split(".")
        const signed = Buffer.from(`${header}.${payload}`)
        if (!verify("sha256", signed, key, Buffer.from(signature, "base64url"))) return false
        const { exp, iss } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>
        return iss === url && Date.now() < Number(exp) * 1000
      }
      return { ...yield* protectedResource(accepts), authUrl: url, tokenRequests: requests }
    })
}

// Ignores the variables and packages of the user, so that Debian's Python finds only Debian's packages.
const python = Program.find(
  "/usr/bin/python3",
  ["-E", "-s", "-c", "import oauth2_provider"],
  "python3-django-oauth-toolkit"
)

/** Opaque tokens, and a resource that introspects each of them over HTTP. */
export const djangoOAuthToolkit: AuthorizationServer = {
  name: "django-oauth-toolkit",
  programs: [python],
  start: (life) =>
    Effect.gen(function*() {
      const folder = yield* Program.folder
      const port = yield* Program.freePort
      const url = `http://127.0.0.1:${port}`
      // The path is the same from `src` and `dist`. The copy is for a user that may not read the sources.
      const script = join(folder, "server.py")
      copyFileSync(fileURLToPath(new URL("../src/django_server.py", import.meta.url)), script)
      const clients = [credentials, resourceServer, rawClient].map(form)
      const input = `${JSON.stringify({ folder, port, life, clients })}\n`
      yield* Program.startServer(python, ["-E", "-s", script], Program.responds(url), input)
      return {
        ...yield* introspecting(`${url}/introspect`, `${url}/revoke`),
        authUrl: url,
        tokenRequests: Effect.sync(() => readFileSync(join(folder, "token-requests"), "utf8").length)
      }
    })
}

const glewlwydProgram = Program.find("/usr/bin/glewlwyd", ["--version"], "glewlwyd")

const scope = "read"

const glewlwydConfiguration = (folder: string, url: string): string => `
port = ${new URL(url).port}
bind_address = "127.0.0.1"
external_url = "${url}"
login_url = "login.html"
api_prefix = "api"
static_files_path = "${folder}"
session_key = "session"
admin_scope = "g_admin"
profile_scope = "g_profile"
user_module_path = "/usr/lib/glewlwyd/user"
user_middleware_module_path = "/usr/lib/glewlwyd/user_middleware"
client_module_path = "/usr/lib/glewlwyd/client"
user_auth_scheme_module_path = "/usr/lib/glewlwyd/scheme"
plugin_module_path = "/usr/lib/glewlwyd/plugin"
hash_algorithm = "SHA512"
database = { type = "sqlite3"; path = "${join(folder, "database")}"; };
`

const glewlwydPlugin = (url: string, life: number) => ({
  module: "oidc",
  name: "oidc",
  display_name: "Tokens for machines",
  parameters: {
    "iss": `${url}/api/oidc`,
    "jwt-type": "sha",
    "jwt-key-size": "256",
    "key": randomBytes(24).toString("hex"),
    "access-token-duration": life,
    "refresh-token-duration": 3600,
    "code-duration": 600,
    "refresh-token-rolling": false,
    "allow-non-oidc": true,
    "auth-type-client-enabled": true,
    "introspection-revocation-allowed": true,
    "introspection-revocation-allow-target-client": true,
    "introspection-revocation-auth-scope": [],
    "subject-type": "public",
    "jwks-show": false,
    "request-parameter-allow": false
  }
})

const glewlwydClient = (given: Credentials) => ({
  ...form(given),
  name: given.clientId,
  enabled: true,
  confidential: true,
  scope: [scope],
  authorization_type: ["client_credentials"],
  token_endpoint_auth_method: ["client_secret_post"]
})

/** Sends the orders of the administrator, whose name and password come with the database of the package. */
const setUpGlewlwyd = async (url: string, life: number) => {
  let cookie = ""
  const post = async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json", cookie }
    const response = await fetch(`${url}/api/${path}/`, { method: "POST", headers, body: JSON.stringify(body) })
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    cookie ||= response.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]).join("; ")
  }
  await post("auth", { username: "admin", password: "password" })
  await post("mod/plugin", glewlwydPlugin(url, life))
  await post("scope", { name: scope, display_name: scope, password_required: false })
  for (const client of [credentials, resourceServer]) await post("client", glewlwydClient(client))
}

const makeGlewlwyd = (addsScope: boolean): AuthorizationServer => ({
  name: "Glewlwyd",
  programs: [glewlwydProgram, Program.nginx],
  start: (life) =>
    Effect.gen(function*() {
      const folder = yield* Program.folder
      const url = `http://127.0.0.1:${yield* Program.freePort}`
      const config = join(folder, "glewlwyd.conf")
      writeFileSync(config, glewlwydConfiguration(folder, url), { mode: 0o644 })
      const database = ".read /usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
      const sqlite = ["-bail", "-cmd", "PRAGMA synchronous = OFF", join(folder, "database"), database]
      execFileSync("/usr/bin/sqlite3", sqlite, Program.unprivileged)
      const isReady = Program.responds(`${url}/api/profile_list`)
      yield* Program.startServer(glewlwydProgram, [`--config-file=${config}`], isReady)
      yield* Effect.promise(() => setUpGlewlwyd(url, life))
      const nginx = yield* Program.startNginx({
        server: `location = ${tokenPath} {
          ${addsScope ? `proxy_set_body "$request_body&scope=${scope}";` : ""}
          proxy_pass ${url}/api/oidc/token;
        }`
      })
      return {
        ...yield* introspecting(`${url}/api/oidc/introspect`, `${url}/api/oidc/revoke`),
        authUrl: nginx.url,
        tokenRequests: Effect.map(nginx.requests, ({ length }) => length)
      }
    })
})

/**
 * nginx gives its token endpoint the specification's path, and adds the scope that it needs. Its tokens are JWTs, but
 * the resource introspects each of them.
 */
export const glewlwyd = makeGlewlwyd(true)

export const glewlwydWithoutScope = makeGlewlwyd(false)
