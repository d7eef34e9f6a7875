/** The servers that the command is driven against, as alike as their users see them. */
import { generateKeyPairSync } from "node:crypto"
import * as Http from "node:http"
import { assert } from "@effect/vitest"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import Provider, { type AdapterFactory, type AdapterPayload } from "oidc-provider"
import { listening } from "./listening.js"
import { demoSecret, newUser, type User } from "./user.js"

const client = { clientId: "interop-client", clientSecret: "an-invented-secret-of-the-client" } as const

/** The response of the API to a request with a token. */
const orders = "{\"orders\":[]}"

/** Made once, because that takes long. The tokens are opaque, so it signs nothing. */
const jwks = { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] }

/** What the server keeps. It has such a thing itself, and warns of it each time. */
const inMemory = (): AdapterFactory => {
  const kept = new Map<string, AdapterPayload>()
  return (model) => {
    const find = (id: string) => Promise.resolve(kept.get(`${model} ${id}`))
    const none = () => Promise.resolve(undefined)
    return {
      find,
      upsert: (id, payload) => Promise.resolve(void kept.set(`${model} ${id}`, payload)),
      destroy: (id) => Promise.resolve(void kept.delete(`${model} ${id}`)),
      // Of other grants.
      findByUserCode: none,
      findByUid: none,
      consume: none,
      revokeByGrantId: none
    }
  }
}

/** The authorization server `oidc-provider` at the specification's path, and an API that uses it. */
const makeOidcProvider = Effect.gen(function*() {
  const [paths, tokens]: [Array<string>, Array<string>] = [[], []]
  let handle: Http.RequestListener = () => undefined
  const server = Http.createServer((request, response) => {
    paths.push(request.url ?? "")
    handle(request, response)
  })
  const url = `http://127.0.0.1:${yield* listening(server)}`
  const provider = new Provider(url, {
    adapter: inMemory(),
    clients: [{
      client_id: client.clientId,
      client_secret: client.clientSecret,
      token_endpoint_auth_method: "client_secret_post",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: []
    }],
    routes: { token: "/v1/oauth/accesstoken" },
    ttl: { ClientCredentials: 600 },
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    jwks
  })
  // As they were sent: what the server knows of a token is not for the search for leaks to rely on.
  provider.on("grant.success", ({ body }) => {
    tokens.push((body as { readonly access_token: string }).access_token)
  })
  const callback = provider.callback()
  handle = (request, response) => {
    if (request.url !== "/orders") return void callback(request, response)
    const token = (request.headers.authorization ?? "").replace(/^Bearer /, "")
    void provider.ClientCredentials.find(token).then((found) =>
      response.writeHead(found === undefined ? 401 : 200, { "Content-Type": "application/json" }).end(orders)
    )
  }
  return {
    url,
    /** Those that were given out. */
    tokens: (): ReadonlyArray<string> => tokens,
    tokenRequests: () => paths.filter((path) => path !== "/orders").length
  }
})

export interface Server {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  /** Those that were given out. */
  readonly tokens: Effect.Effect<ReadonlyArray<string>>
  readonly tokenRequests: Effect.Effect<number>
  /** How its API answers to `GET /orders`. */
  readonly orders: string
  /** For how long a new token is good, in words. */
  readonly life: string
}

const emulator: Effect.Effect<Server, never, Scope.Scope> = Effect.map(
  Effect.orDie(Emulator.make()),
  ({ requests, tokens, url }) => ({
    url,
    clientId: Emulator.demoClient.clientId,
    clientSecret: demoSecret,
    tokens: Effect.map(tokens, (tokens) => tokens.map(({ value }) => Redacted.value(value))),
    tokenRequests: Effect.map(requests, (requests) => requests.filter(({ kind }) => kind === "token").length),
    orders: JSON.stringify({ method: "GET", path: "/orders", query: "", clientId: Emulator.demoClient.clientId }),
    life: "1 h 0 min"
  })
)

const oidcProvider: Effect.Effect<Server, never, Scope.Scope> = Effect.map(
  makeOidcProvider,
  ({ tokenRequests, tokens, url }) => ({
    ...client,
    url,
    tokens: Effect.sync(tokens),
    tokenRequests: Effect.sync(tokenRequests),
    orders: orders,
    life: "10 min 0 s"
  })
)

export type ServerName = "the emulator" | "oidc-provider"

export const servers: Readonly<Record<ServerName, Effect.Effect<Server, never, Scope.Scope>>> = {
  "the emulator": emulator,
  "oidc-provider": oidcProvider
}

/** A user of the server, all of whose settings are in the environment. */
export const userOfServer = (
  { clientId, clientSecret, tokens, url }: Server,
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<User, never, Scope.Scope> =>
  newUser({
    STORE_API_AUTH_URL: url,
    STORE_API_URL: url,
    STORE_API_CLIENT_ID: clientId,
    STORE_API_CLIENT_SECRET: clientSecret,
    ...env
  }, Effect.map(tokens, (tokens) => [clientSecret, ...tokens]))

export const lastTokenOf = ({ tokens }: Server): Effect.Effect<string> =>
  Effect.map(tokens, (tokens) => {
    assert.isNotEmpty(tokens)
    return tokens.at(-1) ?? ""
  })
