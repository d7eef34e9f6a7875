/** The library as an application uses it, requests without it as controls, and servers in their own processes. */
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { shows } from "../../../packages/core/test/support/renderings.js"
import { start } from "../../../packages/platform-node/test/support/childProcess.js"
import { type Credentials, credentials, form, postForm, type Running, tokenPath } from "../src/AuthorizationServer.js"
import type { Order } from "../src/serverProcess.js"

/** Where a server is: itself, or through nginx. */
type Urls = Pick<Running, "apiUrl" | "authUrl">

export interface Client {
  readonly provider: AccessTokenProvider.Service
  readonly api: AuthorizedHttpClient.Service
}

export const client = (
  { apiUrl, authUrl }: Urls,
  { clientId, clientSecret }: Credentials = credentials,
  http?: NodeStoreAuth.Options["http"]
): Effect.Effect<Client, never, Scope.Scope> =>
  Layer.build(NodeStoreAuth.layer({ authUrl, apiUrl, clientId, clientSecret, http })).pipe(
    Effect.map((context) => ({
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      api: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    })),
    Effect.orDie
  )

/** Calls the API and reads the response to its end. */
export const call = (
  { api }: Client
): Effect.Effect<number, Effect.Effect.Error<ReturnType<AuthorizedHttpClient.Service["get"]>>> =>
  Effect.flatMap(api.get("/v1/orders"), (response) => Effect.as(response.text, response.status))

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly scope?: string
}

/** Sends the token request of RFC 6749, section 4, with `fetch`. */
export const requestToken = ({ authUrl }: Urls, client: Credentials = credentials): Effect.Effect<TokenResponse> =>
  Effect.promise(async () => {
    const fields = { grant_type: "client_credentials", ...form(client) }
    return JSON.parse(await postForm(`${authUrl}${tokenPath}`, fields)) as TokenResponse
  })

/** Calls the resource with `fetch`, with or without a token. */
export const callApi = ({ apiUrl }: Urls, token?: string) =>
  Effect.promise(async () => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(`${apiUrl}/v1/orders`, { headers })
    await response.text()
    return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" }
  })

/** How much a server's counts grow during an effect. */
export const counted = <A, E, R>({ calls, tokenRequests, unauthorized }: Running, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const counts = Effect.all({ calls, tokenRequests, unauthorized })
    const before = yield* counts
    const result = yield* effect
    const after = yield* counts
    return {
      result,
      calls: after.calls - before.calls,
      tokenRequests: after.tokenRequests - before.tokenRequests,
      unauthorized: after.unauthorized - before.unauthorized
    }
  })

/** The resource rejects the token, as RFC 6750 describes. */
export const assertRejected = (running: Running, token: string) =>
  Effect.gen(function*() {
    const { challenge, status } = yield* callApi(running, token)
    assert.strictEqual(status, 401)
    assert.match(challenge, /^Bearer\b.*\berror="?invalid_token"?/)
  })

/** Checks that no rendering of an error shows one of these, and that the search would find one. */
export const assertHidden = (error: unknown, secrets: ReadonlyArray<Redacted.Redacted>) => {
  assert.isNotEmpty(secrets)
  for (const secret of secrets.map(Redacted.value)) {
    assert.isTrue(shows(new Error("control", { cause: { body: `client_secret=${secret}` } }), secret))
    assert.isFalse(shows(error, secret))
  }
}

const program = fileURLToPath(new URL("../dist/serverProcess.js", import.meta.url))

/**
 * Starts the server of this name and its resource in a new process, like those of a store, so that neither they nor
 * their callers wait for the other's event loop. Needs the build of `npm run interop`.
 */
export const inOwnProcess = (
  server: Extract<Order, { name: "start" }>["server"],
  life: number
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const child = yield* start(program)
    const ask = <A>(order: Order) => Effect.orDie(child.ask(order)) as Effect.Effect<A>
    const { canRevoke, ...urls } = yield* Effect.acquireRelease(
      ask<Urls & { readonly canRevoke: boolean }>({ name: "start", server, life }),
      () => ask({ name: "stop" })
    )
    const count = (name: "calls" | "tokenRequests" | "unauthorized") =>
      Effect.map(ask<Readonly<Record<typeof name, number>>>({ name: "counts" }), (counts) => counts[name])
    return {
      ...urls,
      calls: count("calls"),
      tokenRequests: count("tokenRequests"),
      unauthorized: count("unauthorized"),
      revoke: canRevoke ? (token) => ask({ name: "revoke", token }) : undefined
    }
  })
