/**
 * Glewlwyd from Debian, in C, behind nginx. nginx gives its token endpoint the specification's path, and adds the scope
 * that Glewlwyd needs. Its tokens are JWTs, but the resource introspects each of them.
 */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import {
  type AuthorizationServer,
  type Credentials,
  credentials,
  form,
  introspecting,
  resourceServer,
  standardEndpoints,
  tokenPath
} from "./AuthorizationServer.js"
import * as Nginx from "./Nginx.js"
import * as Program from "./Program.js"

export const program = Program.find({
  command: "/usr/bin/glewlwyd",
  parameters: ["--version"],
  pattern: /([\d.]+)/,
  debianPackage: "glewlwyd"
})

/** Part of Glewlwyd's package. */
const sqlite = Program.find({
  command: "/usr/bin/sqlite3",
  parameters: ["--version"],
  pattern: /^([\d.]+)/,
  debianPackage: "sqlite3"
})

const emptyDatabase = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"

/** The user that this database has. */
const administrator = { username: "admin", password: "password" }

const scope = "read"

const configuration = (folder: string, port: number): string => `
port = ${port}
bind_address = "127.0.0.1"
external_url = "http://127.0.0.1:${port}"
login_url = "login.html"
api_prefix = "api"
static_files_path = "${folder}"
log_mode = "console"
log_level = "ERROR"
cookie_domain = "127.0.0.1"
cookie_secure = 0
session_expiration = 3600
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

const plugin = (url: string, life: number) => ({
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

const client = (given: Credentials) => ({
  ...form(given),
  name: given.clientId,
  enabled: true,
  confidential: true,
  scope: [scope],
  authorization_type: ["client_credentials"],
  token_endpoint_auth_method: ["client_secret_post"]
})

/** Sends an order of the administrator. Returns the cookies of the response. */
const post = (url: string, body: unknown, cookie = ""): Effect.Effect<string> =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json", cookie }
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
    return response.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]).join("; ")
  })

/** Starts Glewlwyd with these clients, and returns its address. */
const startGlewlwyd = (life: number): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Program.folder
    const port = yield* Program.freePort
    const url = `http://127.0.0.1:${port}`
    const config = join(folder, "glewlwyd.conf")
    writeFileSync(config, configuration(folder, port), { mode: 0o644 })
    const database = yield* Program.run(
      sqlite,
      ["-bail", "-cmd", "PRAGMA synchronous = OFF", join(folder, "database"), `.read ${emptyDatabase}`]
    )
    const problems = yield* database.ended
    if (problems !== "") return yield* Effect.dieMessage(`The database could not be made: ${problems}`)
    yield* Program.startServer(program, [`--config-file=${config}`], Program.responds(`${url}/api/profile_list`))
    const cookie = yield* post(`${url}/api/auth/`, administrator)
    yield* post(`${url}/api/mod/plugin/`, plugin(url, life), cookie)
    yield* post(`${url}/api/scope/`, { name: scope, display_name: scope, password_required: false }, cookie)
    for (const each of [credentials, resourceServer]) yield* post(`${url}/api/client/`, client(each), cookie)
    return url
  })

const make = (addsScope: boolean): AuthorizationServer => ({
  name: "Glewlwyd",
  version: program.version ?? "not installed",
  ...standardEndpoints,
  start: ({ life }) =>
    Effect.gen(function*() {
      const url = yield* startGlewlwyd(life)
      const nginx = yield* Nginx.start({
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

export const glewlwyd = make(true)

/** Without the scope that nginx adds. */
export const withoutScope = make(false)
