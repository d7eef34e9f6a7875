/**
 * Glewlwyd from Debian, in C, behind nginx. nginx gives its token endpoint the specification's path, and adds the scope
 * that Glewlwyd needs. Its tokens are JWTs, but the resource introspects each of them.
 */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Redacted, Schedule, Schema, type Scope } from "effect"
import type { AuthorizationServer, Credentials } from "../AuthorizationServer.js"
import { protectedResource, tokenPath } from "../loopback.js"
import * as Nginx from "../nginx/Nginx.js"
import { postFormOk } from "../wire.js"
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

const invented = () => Redacted.make(randomBytes(24).toString("hex"))

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
    "key": Redacted.value(invented()),
    "access-token-duration": life,
    "refresh-token-duration": 3600,
    "code-duration": 600,
    "refresh-token-rolling": false,
    "allow-non-oidc": true,
    "auth-type-client-enabled": true,
    "auth-type-code-enabled": false,
    "auth-type-token-enabled": false,
    "auth-type-id-token-enabled": false,
    "auth-type-none-enabled": false,
    "auth-type-password-enabled": false,
    "auth-type-refresh-enabled": false,
    "introspection-revocation-allowed": true,
    "introspection-revocation-allow-target-client": true,
    "introspection-revocation-auth-scope": [],
    "subject-type": "public",
    "jwks-show": false,
    "request-parameter-allow": false
  }
})

const client = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  name: clientId,
  enabled: true,
  confidential: true,
  scope: [scope],
  authorization_type: ["client_credentials"],
  token_endpoint_auth_method: ["client_secret_post"],
  client_secret: Redacted.value(clientSecret)
})

/** The body fields of a client's credentials. */
const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

const post = (url: string, body: unknown, cookie = ""): Effect.Effect<string> =>
  Effect.gen(function*() {
    const response = yield* Effect.promise(() =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", cookie },
        body: JSON.stringify(body)
      })
    )
    const text = yield* Effect.promise(() => response.text())
    if (response.status !== 200) yield* Effect.dieMessage(`${url} answered ${response.status}: ${text}`)
    return response.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]).join("; ")
  })

/** Starts Glewlwyd with an empty database, and returns its address. */
const startOn = (port: number): Effect.Effect<string, Program.PortTaken, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Program.folder
    const config = join(folder, "glewlwyd.conf")
    yield* Effect.sync(() => writeFileSync(config, configuration(folder, port), { mode: 0o644 }))
    const database = yield* Program.run(
      sqlite,
      ["-bail", "-cmd", "PRAGMA synchronous = OFF", join(folder, "database"), `.read ${emptyDatabase}`]
    )
    const problems = yield* database.ended
    if (problems !== "") return yield* Effect.dieMessage(`The database could not be made: ${problems}`)
    const server = yield* Program.run(program, [`--config-file=${config}`])
    const url = `http://127.0.0.1:${port}`
    yield* Effect.raceFirst(
      Effect.tryPromise(() => fetch(`${url}/api/profile_list`)).pipe(
        Effect.andThen((response) => Effect.promise(() => response.text())),
        Effect.retry(Schedule.spaced("20 millis")),
        Effect.orDie
      ),
      Effect.flatMap(server.ended, (errors) => {
        const said = `${server.output()}${errors}`
        return /address already in use/i.test(said)
          ? Effect.fail(new Program.PortTaken())
          : Effect.dieMessage(`Glewlwyd ended at once: ${said}`)
      })
    )
    return url
  })

const Introspection = Schema.parseJson(Schema.Struct({ active: Schema.Boolean }))

export interface Options {
  /** Whether nginx adds the scope to the request. */
  readonly addsScope: boolean
}

export const make = ({ addsScope }: Options): AuthorizationServer => ({
  name: "Glewlwyd",
  version: program.version ?? "not installed",
  checks: "introspects each token over HTTP (RFC 7662)",
  revocation: { offered: true, how: "revocation endpoint (RFC 7009)" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const credentials = { clientId: "interop-client", clientSecret: invented() }
      const resourceServer = { clientId: "interop-resource", clientSecret: invented() }
      const url = yield* Program.onFreePort(startOn)
      const cookie = yield* post(`${url}/api/auth/`, administrator)
      yield* post(`${url}/api/mod/plugin/`, plugin(url, life), cookie)
      yield* post(`${url}/api/scope/`, { name: scope, display_name: scope, password_required: false }, cookie)
      for (const each of [credentials, resourceServer]) yield* post(`${url}/api/client/`, client(each), cookie)

      const nginx = yield* Nginx.start({
        server: `location = ${tokenPath} {
          ${addsScope ? `proxy_set_body "$request_body&scope=${scope}";` : ""}
          proxy_pass ${url}/api/oidc/token;
        }`
      })
      const resource = yield* protectedResource((token) =>
        postFormOk(`${url}/api/oidc/introspect`, { ...form(resourceServer), token }).pipe(
          Effect.andThen(Schema.decode(Introspection)),
          Effect.orDie,
          Effect.map(({ active }) => active)
        )
      )
      return {
        authUrl: nginx.url,
        ...resource,
        credentials,
        tokenRequests: Effect.map(nginx.requests, ({ length }) => length),
        revoke: (token) =>
          Effect.asVoid(postFormOk(`${url}/api/oidc/revoke`, { ...form(credentials), token: Redacted.value(token) }))
      }
    })
})

export const glewlwyd = make({ addsScope: true })
