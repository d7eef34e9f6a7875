/**
 * Authorization servers of other projects, each on loopback with a protected resource that accepts its tokens: three
 * packages of npm in this process, and two of Debian, in Python and in C, in their own.
 */
import { execFileSync } from "node:child_process"
import { createPublicKey, generateKeyPairSync, type JsonWebKey, randomBytes, verify } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import Framework from "@node-oauth/oauth2-server"
import { Effect, Redacted, type Scope } from "effect"
import { type MutableResponse, type MutableToken, OAuth2Server } from "oauth2-mock-server"
import Provider from "oidc-provider"
import * as Program from "./Program.js"

/** What a started server provides. */
interface Issuer {
  /** The `authUrl` of `StoreAuth`: the token endpoint is this and `/v1/oauth/accesstoken`. */
  readonly authUrl: string
  /** The token requests that reached the server, as it counts them. */
  readonly tokenRequests: Effect.Effect<number>
  /** How the protected resource checks a token. */
  readonly accepts: (token: string) => boolean | Promise<boolean>
  /** Revokes a token in the server's own way, if it has one. */
  readonly revoke?: (token: string) => Effect.Effect<unknown>
}

export interface Running extends Pick<Issuer, "authUrl" | "revoke"> {
  /** The protected resource: responds with 200 to a valid token of the server, otherwise with 401 and a challenge. */
  readonly apiUrl: string
  /** The requests that reached the server and the resource, and the 401 responses of the resource. */
  readonly counts: Effect.Effect<Record<"tokenRequests" | "calls" | "unauthorized", number>>
}

/** A server that can be started several times, with tokens of a lifetime in seconds. It accepts `credentials`. */
export interface AuthorizationServer {
  readonly name: string
  /** The programs of Debian that it needs. */
  readonly programs: ReadonlyArray<Program.Program>
  readonly start: (life: number) => Effect.Effect<Running, never, Scope.Scope>
}

export const tokenPath = "/v1/oauth/accesstoken"

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

const credentialsOf = (clientId: string, secret: string): Credentials => (
  { clientId, clientSecret: Redacted.make(secret) }
)

export const credentials = credentialsOf("interop-client", "an-invented-secret-of-the-client")

/** The resource's own client. It introspects tokens and uses none. */
const resourceServer = credentialsOf("interop-resource", "an-invented-secret-of-the-resource")

/** Its secret holds characters that a form encodes and the specification sends raw. */
export const rawClient = credentialsOf("interop-raw-client", "an+invented%20secret")

/** The body fields of a client's credentials. */
export const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

/** Posts a form and returns the body; the status must be 200. */
export const postForm = async (url: string, fields: Readonly<Record<string, string>>): Promise<string> => {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(fields) })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${body}`)
  return body
}

/** Listens on a free port until the scope ends, and counts the requests, or those to one path. */
export const serve = (make: (url: string) => RequestListener, path?: string) =>
  Effect.gen(function*() {
    // As for servers behind a balancer. Node accepts one connection per turn of its event loop: if many callers opened
    // new connections at once, the last would wait for the whole lifetime of a token.
    const server = createServer({ keepAliveTimeout: 65_000 })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    // Some servers need their URL.
    const handle = make(url)
    let requests = 0
    server.on("request", (request, response) => {
      if (path === undefined || request.url === path) requests++
      handle(request, response)
    })
    return { url, requests: Effect.sync(() => requests) }
  })

/** The endpoints of RFC 7662 and RFC 7009. */
const introspecting = (introspection: string, revocation: string): Pick<Issuer, "accepts" | "revoke"> => ({
  accepts: async (token) => {
    const body = await postForm(introspection, { ...form(resourceServer), token })
    return (JSON.parse(body) as { readonly active: boolean }).active
  },
  revoke: (token) => Effect.promise(() => postForm(revocation, { ...form(credentials), token }))
})

/** Adds the protected resource to a server. */
const server = (
  name: string,
  programs: ReadonlyArray<Program.Program>,
  start: (life: number) => Effect.Effect<Issuer, never, Scope.Scope>
): AuthorizationServer => ({
  name,
  programs,
  start: (life) =>
    Effect.gen(function*() {
      const { accepts, tokenRequests, ...issuer } = yield* start(life)
      let unauthorized = 0
      const challengeFor = async (token: string | undefined) =>
        token === undefined ? "Bearer" : await accepts(token) ? undefined : `Bearer error="invalid_token"`
      const { requests: calls, url } = yield* serve(() => (request, response) => {
        request.resume()
        const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? []
        void challengeFor(token).then((challenge) => {
          if (challenge === undefined) return response.end("{}")
          unauthorized++
          return response.writeHead(401, { "www-authenticate": challenge }).end("{}")
        }, (error: unknown) => response.writeHead(500).end(String(error)))
      })
      const counts = Effect.all({ tokenRequests, calls, unauthorized: Effect.sync(() => unauthorized) })
      return { ...issuer, apiUrl: url, counts }
    })
})

export const oidcProvider = server("oidc-provider", [], (life) =>
  Effect.map(
    serve((url) => {
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
    }, tokenPath),
    ({ requests, url }) => ({
      ...introspecting(`${url}/introspection`, `${url}/revocation`),
      authUrl: url,
      tokenRequests: requests
    })
  ))

/** A framework that issues and checks tokens. A model keeps them, and deletes those that are revoked. */
export const nodeOAuth2Server = server("@node-oauth/oauth2-server", [], (life) => {
  const tokens = new Map<string, Framework.Token>()
  const framework = new Framework({
    accessTokenLifetime: life,
    model: {
      getClient: (id: string, secret: string) => {
        const isRight = id === credentials.clientId && secret === Redacted.value(credentials.clientSecret)
        return Promise.resolve(isRight && { id, grants: ["client_credentials"] })
      },
      getUserFromClient: ({ id }) => Promise.resolve({ id }),
      saveToken: (saved, client, user) => {
        const token = { ...saved, client, user }
        tokens.set(token.accessToken, token)
        return Promise.resolve(token)
      },
      getAccessToken: (value: string) => Promise.resolve(tokens.get(value))
    } satisfies Framework.ClientCredentialsModel
  })
  return Effect.map(
    serve(() => async (request, response) => {
      const asked = new Framework.Request({
        headers: request.headers as Record<string, string>,
        method: request.method ?? "",
        query: {},
        body: Object.fromEntries(new URLSearchParams(await text(request)))
      })
      const answer = new Framework.Response()
      const [status, body] = await framework.token(asked, answer).then(
        () => [answer.status ?? 500, answer.body as unknown] as const,
        (error: unknown) =>
          error instanceof Framework.OAuthError
            ? [error.code, { error: error.name, error_description: error.message }] as const
            : [500, {}] as const
      )
      response.writeHead(status, { ...answer.headers, "content-type": "application/json" })
      response.end(JSON.stringify(body))
    }, tokenPath),
    ({ requests, url }) => ({
      authUrl: url,
      tokenRequests: requests,
      accepts: (token) => {
        const headers = { authorization: `Bearer ${token}` }
        const asked = new Framework.Request({ headers, method: "GET", query: {} })
        return framework.authenticate(asked, new Framework.Response()).then(() => true, () => false)
      },
      revoke: (token) => Effect.sync(() => tokens.delete(token))
    })
  )
})

/** JWTs, which the resource verifies with the server's only published key. */
export const oauth2MockServer = server("oauth2-mock-server", [], (life) =>
  Effect.gen(function*() {
    const mock = new OAuth2Server(undefined, undefined, { endpoints: { token: tokenPath } })
    // Its tokens are valid for an hour, which only its events can change.
    mock.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
      payload.exp = payload.iat + life
    })
    mock.service.on("beforeResponse", (response: MutableResponse) => {
      if (response.body !== "") response.body["expires_in"] = life
    })
    yield* Effect.promise(() => mock.issuer.keys.generate("RS256"))
    const { requests, url } = yield* serve((url) => {
      mock.issuer.url = url
      return mock.service.requestHandler
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
    return { authUrl: url, tokenRequests: requests, accepts }
  }))

// Ignores the variables and packages of the user, so that Debian's Python finds only Debian's packages.
const python = Program.find(
  "/usr/bin/python3",
  ["-E", "-s", "-c", "import oauth2_provider"],
  "python3-django-oauth-toolkit"
)

export const djangoOAuthToolkit = server("django-oauth-toolkit", [python], (life) =>
  Effect.gen(function*() {
    const folder = yield* Program.folder
    const port = yield* Program.freePort
    const url = `http://127.0.0.1:${port}`
    const script = fileURLToPath(new URL("django_server.py", import.meta.url))
    const clients = [credentials, resourceServer, rawClient].map(form)
    const input = `${JSON.stringify({ folder, port, life, clients })}\n`
    yield* Program.startServer(python, ["-E", "-s", script], Program.responds(url), input)
    return {
      ...introspecting(`${url}/introspect`, `${url}/revoke`),
      authUrl: url,
      tokenRequests: Effect.sync(() => readFileSync(join(folder, "token-requests"), "utf8").length)
    }
  }))

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
  for (const client of [credentials, resourceServer]) {
    await post("client", {
      ...form(client),
      name: client.clientId,
      enabled: true,
      confidential: true,
      scope: [scope],
      authorization_type: ["client_credentials"],
      token_endpoint_auth_method: ["client_secret_post"]
    })
  }
}

/** nginx gives its token endpoint the specification's path, and adds the scope that it needs, except below `bare`. */
export const glewlwyd = server("Glewlwyd", [glewlwydProgram, Program.nginx], (life) =>
  Effect.gen(function*() {
    const folder = yield* Program.folder
    const url = `http://127.0.0.1:${yield* Program.freePort}`
    const config = join(folder, "glewlwyd.conf")
    writeFileSync(config, glewlwydConfiguration(folder, url))
    const database = ".read /usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
    const sqlite = ["-bail", "-cmd", "PRAGMA synchronous = OFF", join(folder, "database"), database]
    execFileSync("/usr/bin/sqlite3", sqlite, Program.environment)
    const isReady = Program.responds(`${url}/api/profile_list`)
    yield* Program.startServer(glewlwydProgram, [`--config-file=${config}`], isReady)
    yield* Effect.promise(() => setUpGlewlwyd(url, life))
    const token = `proxy_pass ${url}/api/oidc/token;`
    const nginx = yield* Program.startNginx({
      server: `location = ${tokenPath} { proxy_set_body "$request_body&scope=${scope}"; ${token} }
        location = /bare${tokenPath} { ${token} }`
    })
    return {
      ...introspecting(`${url}/api/oidc/introspect`, `${url}/api/oidc/revoke`),
      authUrl: nginx.url,
      tokenRequests: Effect.map(nginx.requests, ({ length }) => length)
    }
  }))
