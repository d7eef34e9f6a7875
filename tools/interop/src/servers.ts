/**
 * Authorization servers of other projects, each on loopback with a protected resource that accepts its tokens: three
 * packages of npm in this process, and two of Debian, in Python and in C, in their own.
 */
import { execFileSync } from "node:child_process"
import { generateKeyPairSync, randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import Framework from "@node-oauth/oauth2-server"
import { freePort, listen } from "@store-api/testing/loopback"
import { Effect, Redacted, type Scope } from "effect"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { type MutableResponse, type MutableToken, OAuth2Server } from "oauth2-mock-server"
import Provider from "oidc-provider"
import * as Program from "./Program.js"

/** What a started server provides. */
interface Issuer {
  /** The `authUrl` of `StoreAuth`. */
  readonly authUrl: string
  /** The server's own path of the token endpoint, below `authUrl`. */
  readonly path: string
  /** How the protected resource checks a token. */
  readonly accepts: (token: string) => boolean | Promise<boolean>
  /** Revokes a token in the server's own way. */
  readonly revoke: (token: string) => Effect.Effect<unknown>
}

export interface Running extends Omit<Issuer, "accepts"> {
  /** The protected resource: responds with 200 to a valid token of the server, otherwise with 401 and a challenge. */
  readonly apiUrl: string
  /** The token requests that clients sent, the requests that reached the resource, and its 401 responses. */
  readonly counts: Record<"tokenRequests" | "calls" | "unauthorized", number>
}

/** Starts a server with tokens of a lifetime in seconds. It accepts these clients besides `credentials`. */
type Start<A> = (
  life: number,
  others?: ReadonlyArray<Credentials>
) => Effect.Effect<A, never, Scope.Scope>

/** A server that can be started several times. */
export interface AuthorizationServer {
  readonly name: string
  /** The program of Debian that it needs. */
  readonly program: Program.Program | undefined
  readonly start: Start<Running>
}

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

/** The path of the specification. */
export const tokenPath = "/v1/oauth/accesstoken"

export const credentialsOf = (clientId: string, secret: string): Credentials => (
  { clientId, clientSecret: Redacted.make(secret) }
)

export const credentials = credentialsOf("interop-client", "an-invented-secret-of-the-client")

/** The resource's own client. It introspects tokens and uses none. */
const resourceServer = credentialsOf("interop-resource", "an-invented-secret-of-the-resource")

const rsa = () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  return {
    pem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    privateKey,
    publicKey
  }
}

const signing = rsa()

/** oidc-provider's client whose secret is a private key, of which the server knows the public half. */
export const signingClient = credentialsOf("interop-signing-client", signing.pem)

/** Another private key than the client's. */
export const otherKey = Redacted.make(rsa().pem)

/** An API that oidc-provider grants tokens for (RFC 8707), and the scope of all servers. */
export const resource = "https://api.interop.example"
export const scope = "read"

/** The body fields of a client's credentials. */
export const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

/** Posts a form and returns the body; the status must be 200. */
export const postForm = async (
  url: string,
  fields: Readonly<Record<string, string>>
): Promise<string> => {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(fields) })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${body}`)
  return body
}

/** Listens on a free port until the scope ends, and counts the requests. */
export const serve = (make: (url: string) => RequestListener) =>
  Effect.gen(function*() {
    // As for servers behind a balancer. Node accepts one connection per turn of its event loop: if many callers opened
    // new connections at once, the last would wait for the whole lifetime of a token.
    const server = createServer({ keepAliveTimeout: 65_000 })
    // Some servers need their URL.
    const { url } = yield* listen(server)
    let requests = 0
    server.on("request", () => requests++).on("request", make(url))
    return { url, requests: Effect.sync(() => requests) }
  })

/** The endpoints of RFC 7662 and RFC 7009. */
const introspecting = (
  introspection: string,
  revocation: string
): Pick<Issuer, "accepts" | "revoke"> => ({
  accepts: async (token) => {
    const body = await postForm(introspection, { ...form(resourceServer), token })
    return (JSON.parse(body) as { readonly active: boolean }).active
  },
  revoke: (token) =>
    Effect.promise(() => postForm(revocation, { ...form(credentials), token }))
})

/** Adds the protected resource to a server. */
const server = (
  name: string,
  program: Program.Program | undefined,
  start: Start<Issuer>
): AuthorizationServer => ({
  name,
  program,
  start: (life, others = []) =>
    Effect.gen(function*() {
      const { accepts, ...issuer } = yield* start(life, [credentials, ...others])
      const counts = { tokenRequests: 0, calls: 0, unauthorized: 0 }
      const challengeFor = async (token: string | undefined) =>
        token === undefined
          ? "Bearer"
          : await accepts(token)
          ? undefined
          : `Bearer error="invalid_token"`
      const { url } = yield* serve(() => (request, response) => {
        counts.calls++
        request.resume()
        const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? []
        void challengeFor(token).then((challenge) => {
          if (challenge === undefined) return response.end("{}")
          counts.unauthorized++
          return response.writeHead(401, { "www-authenticate": challenge }).end("{}")
        }, (error: unknown) => response.writeHead(500).end(String(error)))
      })
      return { ...issuer, apiUrl: url, counts }
    })
})

export const oidcProvider = server(
  "oidc-provider",
  undefined,
  (life, clients = []) =>
    Effect.map(
      serve((url) => {
        const registered = {
          grant_types: ["client_credentials"],
          redirect_uris: [],
          response_types: []
        }
        const provider = new Provider(url, {
          clients: [
            // The server also accepts their secrets in a header.
            ...[resourceServer, ...clients].map((client) => ({
              ...registered,
              ...form(client),
              token_endpoint_auth_method: "client_secret_post" as const
            })),
            {
              ...registered,
              client_id: signingClient.clientId,
              token_endpoint_auth_method: "private_key_jwt",
              jwks: {
                keys: [{ ...signing.publicKey.export({ format: "jwk" }), kid: "key-1" }]
              }
            }
          ],
          scopes: [scope],
          ttl: { ClientCredentials: life },
          features: {
            clientCredentials: { enabled: true },
            devInteractions: { enabled: false },
            introspection: {
              enabled: true,
              allowedPolicy: (_, client) => client.clientId === resourceServer.clientId
            },
            resourceIndicators: {
              getResourceServerInfo: (_, audience) => ({
                scope,
                audience,
                accessTokenFormat: "opaque"
              })
            },
            revocation: { enabled: true, allowedPolicy: () => true }
          },
          // Only id tokens are signed, and no test requests one. Without a key, it logs at each start that it made one.
          jwks: { keys: [rsa().privateKey.export({ format: "jwk" })] }
        })
        const handle = provider.callback()
        return (request, response) => void handle(request, response)
      }),
      ({ url }) => ({
        ...introspecting(`${url}/token/introspection`, `${url}/token/revocation`),
        authUrl: url,
        path: "/token"
      })
    )
)

/**
 * A framework that issues and checks tokens. A model keeps them, and deletes those that are revoked. The application
 * chooses the path of the token endpoint: here it is the specification's.
 */
export const nodeOAuth2Server = server(
  "@node-oauth/oauth2-server",
  undefined,
  (life, clients = []) => {
    const tokens = new Map<string, Framework.Token>()
    const framework = new Framework({
      accessTokenLifetime: life,
      model: {
        getClient: (id: string, secret: string) => {
          const isRight = clients.some(({ clientId, clientSecret }) =>
            id === clientId && secret === Redacted.value(clientSecret)
          )
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
      }),
      ({ url }) => ({
        authUrl: url,
        path: tokenPath,
        accepts: (token) => {
          const headers = { authorization: `Bearer ${token}` }
          const asked = new Framework.Request({ headers, method: "GET", query: {} })
          return framework.authenticate(asked, new Framework.Response()).then(
            () => true,
            () => false
          )
        },
        revoke: (token) => Effect.sync(() => tokens.delete(token))
      })
    )
  }
)

/** JWTs, which the resource verifies with the server's only published key. */
export const oauth2MockServer = server(
  "oauth2-mock-server",
  undefined,
  (life) =>
    Effect.gen(function*() {
      const mock = new OAuth2Server()
      // Its tokens are valid for an hour, which only its events can change.
      mock.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
        payload.exp = payload.iat + life
      })
      mock.service.on("beforeResponse", (response: MutableResponse) => {
        if (response.body !== "") response.body["expires_in"] = life
      })
      yield* Effect.promise(() => mock.issuer.keys.generate("RS256"))
      const { url } = yield* serve((url) => {
        mock.issuer.url = url
        return mock.service.requestHandler
      })
      const keys = createRemoteJWKSet(new URL(`${url}/jwks`))
      const accepts = (token: string) =>
        jwtVerify(token, keys, { issuer: url }).then(() => true, () => false)
      return {
        authUrl: url,
        path: "/token",
        accepts,
        revoke: () => Effect.dieMessage("It revokes nothing.")
      }
    })
)

// Ignores the variables and packages of the user, so that Debian's Python finds only Debian's packages.
const python = Program.find(
  "/usr/bin/python3",
  ["-E", "-s", "-c", "import oauth2_provider"],
  "python3-django-oauth-toolkit"
)

export const djangoOAuthToolkit = server(
  "django-oauth-toolkit",
  python,
  (life, others = []) =>
    Effect.gen(function*() {
      const folder = yield* Program.folder
      const port = yield* freePort
      const url = `http://127.0.0.1:${port}`
      const script = fileURLToPath(new URL("django_server.py", import.meta.url))
      const clients = [resourceServer, ...others].map(form)
      const input = `${JSON.stringify({ folder, port, life, clients })}\n`
      yield* Program.startServer(python, ["-E", "-s", script], Program.responds(url), input)
      return {
        ...introspecting(`${url}/o/introspect/`, `${url}/o/revoke_token/`),
        authUrl: `${url}/o`,
        path: "/token/"
      }
    })
)

const glewlwydProgram = Program.find("/usr/bin/glewlwyd", ["--version"], "glewlwyd")
const glewlwydConfiguration = (folder: string, url: string): string => `
port = ${new URL(url).port}
bind_address = "127.0.0.1"
external_url = "${url}"
api_prefix = "api"
static_files_path = "${folder}"
admin_scope = "g_admin"
user_module_path = "/usr/lib/glewlwyd/user"
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
    "allow-non-oidc": true,
    "auth-type-client-enabled": true,
    "introspection-revocation-allowed": true,
    "introspection-revocation-allow-target-client": true,
    "introspection-revocation-auth-scope": [],
    "subject-type": "public"
  }
})

/** Sends the orders of the administrator, whose name and password come with the database of the package. */
const setUpGlewlwyd = async (
  url: string,
  life: number,
  clients: ReadonlyArray<Credentials>
) => {
  let cookie = ""
  const post = async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json", cookie }
    const response = await fetch(`${url}/api/${path}/`, {
      method: "POST",
      headers,
      body: JSON.stringify(body)
    })
    if (response.status !== 200) {
      throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    }
    cookie ||= response.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]).join(
      "; "
    )
  }
  await post("auth", { username: "admin", password: "password" })
  await post("mod/plugin", glewlwydPlugin(url, life))
  await post("scope", { name: scope, display_name: scope, password_required: false })
  for (const client of [resourceServer, ...clients]) {
    await post("client", {
      ...form(client),
      name: client.clientId,
      enabled: true,
      confidential: true,
      scope: [scope],
      authorization_type: ["client_credentials"],
      token_endpoint_auth_method: ["client_secret_post", "client_secret_basic"]
    })
  }
}

export const glewlwyd = server(
  "Glewlwyd",
  glewlwydProgram,
  (life, clients = []) =>
    Effect.gen(function*() {
      const folder = yield* Program.folder
      const url = `http://127.0.0.1:${yield* freePort}`
      const config = join(folder, "glewlwyd.conf")
      writeFileSync(config, glewlwydConfiguration(folder, url))
      const database = ".read /usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
      const sqlite = [
        "-bail",
        "-cmd",
        "PRAGMA synchronous = OFF",
        join(folder, "database"),
        database
      ]
      execFileSync("/usr/bin/sqlite3", sqlite, Program.environment)
      const isReady = Program.responds(`${url}/api/profile_list`)
      yield* Program.startServer(glewlwydProgram, [`--config-file=${config}`], isReady)
      yield* Effect.promise(() => setUpGlewlwyd(url, life, clients))
      return {
        ...introspecting(`${url}/api/oidc/introspect`, `${url}/api/oidc/revoke`),
        authUrl: `${url}/api/oidc/token`,
        path: ""
      }
    })
)
