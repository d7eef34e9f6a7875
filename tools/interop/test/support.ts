/** The library as an application uses it, and requests without it as controls. */
import { assert } from "@effect/vitest"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { shows } from "../../../packages/core/test/support/renderings.js"
import { type Credentials, credentials, form, postForm, type Running, tokenPath } from "../src/servers.js"

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
