/** The library as an application uses it, and requests without it as controls. */
import { randomUUID } from "node:crypto"
import { HttpClient } from "@effect/platform"
import { assert } from "@effect/vitest"
import { AccessTokenProvider, AuthorizedHttpClient, TokenRequest } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { shows } from "@store-api/testing/renderings"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { importPKCS8, SignJWT } from "jose"
import {
  type Credentials,
  credentials,
  form,
  postForm,
  type Running,
  scope
} from "../src/servers.js"

/** Where a server is. */
type Target = Omit<Running, "revoke">

export interface Client {
  readonly provider: AccessTokenProvider.Service
  readonly api: AuthorizedHttpClient.Service
}

/** The default of each is the same as an application's. */
interface Options {
  readonly client?: Credentials | undefined
  readonly request?: TokenRequest.TokenRequest | undefined
}

export const clientOf = (
  { apiUrl, authUrl, counts, path }: Target,
  { client = credentials, request }: Options = {}
): Effect.Effect<Client, never, Scope.Scope> =>
  Layer.build(NodeStoreAuth.layer({
    authUrl,
    apiUrl,
    ...client,
    endpoint: { path, request },
    transformClient: HttpClient.tapRequest(({ url }) =>
      Effect.sync(() => {
        if (url === `${authUrl}${path}`) counts.tokenRequests++
      })
    )
  })).pipe(
    Effect.map((context) => ({
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      api: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    })),
    Effect.orDie
  )

/** `private_key_jwt` as in the guide docs/guides/other-oauth-servers.md, where the client secret is the private key. */
export const signedRequest = ({ authUrl }: Target): TokenRequest.TokenRequest =>
  TokenRequest.clientAssertion(
    ({ clientId, clientSecret }) =>
      Effect.promise(async () =>
        await new SignJWT({ iss: clientId, sub: clientId, aud: authUrl, jti: randomUUID() })
          .setProtectedHeader({ alg: "RS256", kid: "key-1" }).setIssuedAt()
          .setExpirationTime("1 minute")
          .sign(await importPKCS8(Redacted.value(clientSecret), "RS256"))
      ).pipe(Effect.map((assertion) => Redacted.make(assertion))),
    { scope }
  )

/** Calls the API and reads the response to its end. */
export const call = (
  { api }: Client
): Effect.Effect<
  number,
  Effect.Effect.Error<ReturnType<AuthorizedHttpClient.Service["get"]>>
> =>
  Effect.flatMap(
    api.get("/v1/orders"),
    (response) => Effect.as(response.text, response.status)
  )

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly scope?: string
}

/** Sends the token request of RFC 6749, section 4, with these fields and `fetch`. */
export const requestToken = (
  { authUrl, path }: Pick<Running, "authUrl" | "path">,
  fields: Readonly<Record<string, string>> = {}
): Effect.Effect<TokenResponse> =>
  Effect.promise(async () => {
    const all = { grant_type: "client_credentials", ...form(credentials), ...fields }
    return JSON.parse(await postForm(`${authUrl}${path}`, all)) as TokenResponse
  })

/** Calls the resource with `fetch`, with or without a token. */
export const callApi = ({ apiUrl }: Pick<Running, "apiUrl">, token?: string) =>
  Effect.promise(async () => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(`${apiUrl}/v1/orders`, { headers })
    await response.text()
    return {
      status: response.status,
      challenge: response.headers.get("www-authenticate") ?? ""
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
    assert.isTrue(
      shows(new Error("control", { cause: { body: `client_secret=${secret}` } }), secret)
    )
    assert.isFalse(shows(error, secret))
  }
}
