/** The servers that the command is driven against, as alike as their users see them, and servers of a test. */
import { generateKeyPairSync } from "node:crypto"
import * as Http from "node:http"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import Provider, { type AdapterFactory, type AdapterPayload } from "oidc-provider"
import { listen } from "../../../platform-node/test/utils.js"
import { demoSecret, newUser, type User } from "./cli.js"

/** Starts an API with this handler, and returns its URL. */
export const serving = (handler: Http.RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(listen(Http.createServer(handler)), ({ url }) => url)

/** An API whose response has no end. */
export const endless = Effect.gen(function*() {
  let sent = 0
  const url = yield* serving((_request, response) => {
    const chunk = Buffer.alloc(64 * 1024, "x")
    const more = () => {
      do sent += chunk.length
      while (response.write(chunk))
    }
    response.on("drain", more)
    more()
  })
  return {
    url,
    /** Waits until nothing more is read, and returns how many bytes were sent. */
    stalled: Effect.gen(function*() {
      let before = -1
      while (sent === 0 || sent !== before) {
        before = sent
        yield* Effect.sleep("500 millis")
      }
      return sent
    }),
    /** Waits until that many bytes were sent. */
    beyond: (bytes: number) => Effect.repeat(Effect.sleep("20 millis"), { while: () => sent < bytes })
  }
})

/** More bytes than the buffers between a server and a reader hold. */
export const tooMuch = 32 * 1024 * 1024

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

/** Made once, because that takes long. The tokens are opaque, so it signs nothing. */
const jwks = { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] }

/** What the server keeps. It has such a thing itself, and warns of it each time. */
const inMemory = (): AdapterFactory => {
  const kept = new Map<string, AdapterPayload>()
  return (model) => {
    const none = () => Promise.resolve(undefined)
    return {
      find: (id) => Promise.resolve(kept.get(`${model} ${id}`)),
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
const oidcProvider: Effect.Effect<Server, never, Scope.Scope> = Effect.gen(function*() {
  const [clientId, clientSecret] = ["interop-client", "an-invented-secret-of-the-client"]
  const orders = "{\"orders\":[]}"
  const [paths, tokens]: [Array<string>, Array<string>] = [[], []]
  let handle: Http.RequestListener = () => undefined
  const url = yield* serving((request, response) => {
    paths.push(request.url ?? "")
    handle(request, response)
  })
  const provider = new Provider(url, {
    adapter: inMemory(),
    clients: [{
      client_id: clientId,
      client_secret: clientSecret,
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
    clientId,
    clientSecret,
    tokens: Effect.sync(() => tokens),
    tokenRequests: Effect.sync(() => paths.filter((path) => path !== "/orders").length),
    orders,
    life: "10 min 0 s"
  }
})

export const servers = { "the emulator": emulator, "oidc-provider": oidcProvider } as const

/** A user of the server, all of whose settings are in the environment. */
export const userOfServer = (
  { clientId, clientSecret, tokens, url }: Server,
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<User, never, Scope.Scope> =>
  newUser({
    ...{ STORE_API_AUTH_URL: url, STORE_API_URL: url, STORE_API_CLIENT_ID: clientId },
    STORE_API_CLIENT_SECRET: clientSecret,
    ...env
  }, Effect.map(tokens, (tokens) => [clientSecret, ...tokens]))
