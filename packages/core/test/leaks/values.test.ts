import { FetchHttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { ConfigProvider, DateTime, Effect, Either, Layer, Option, Redacted, Schema } from "effect"
import { unreadable } from "../support/config.js"
import * as Canary from "./support/canary.js"
import { render } from "./support/renderings.js"
import { leaksIn } from "./support/search.js"

const secret = Canary.secret()
const token = Canary.token()
const canaries = [secret, token]
const nothingIn = (value: unknown) => deepStrictEqual(leaksIn(render("it", value), canaries), [])

const accessToken = new AccessToken.AccessToken({
  value: Redacted.make(token.value),
  acquiredAt: DateTime.unsafeMake(0),
  expiresAt: DateTime.unsafeMake("2100-01-01T00:00:00Z"),
  developerEmail: Option.some(Redacted.make(secret.value))
})

describe("no printing of a value shows the secret or the token", () => {
  it("an access token, alone, in an Option, copied, and encoded", () => {
    nothingIn(accessToken)
    nothingIn(Option.some(accessToken))
    nothingIn({ ...accessToken })
    nothingIn(Schema.encodeSync(AccessToken.AccessToken)(accessToken))
    nothingIn(Schema.encodeEither(AccessToken.AccessToken)({ ...accessToken, tokenType: "mac" } as never))
    nothingIn(Schema.decodeUnknownEither(AccessToken.AccessToken)({ value: Redacted.make(token.value) }))
    nothingIn(Schema.decodeUnknownEither(AccessToken.AccessToken)({ ...accessToken, value: Redacted.make(1) }))
  })

  it.effect("credentials, their body, and what is wrong with them", () =>
    Effect.gen(function*() {
      const options = { clientId: "invented-client", clientSecret: Redacted.make(secret.value) }
      const credentials = ClientCredentials.make(options)
      nothingIn(options)
      nothingIn(credentials)
      for (const unsendable of ["&", "\n", "\u0000", "é", " \r\n"]) {
        const clientSecret = Redacted.make(`${secret.value}${unsendable}`)
        const error = yield* Effect.flip(ClientCredentials.make({ ...options, clientSecret }))
        assert.instanceOf(error, AccessTokenError.CredentialsError)
        nothingIn(error)
        nothingIn(yield* Effect.flip(ClientCredentials.make({ clientId: secret.value + unsendable, clientSecret })))
      }
      nothingIn(
        yield* Effect.flip(ClientCredentials.fromConfig()).pipe(
          Effect.withConfigProvider(unreadable("STORE_API_CLIENT_SECRET", secret.value))
        )
      )
    }))

  it.effect("configuration errors: what is missing, empty, no URL, or a URL that holds the secret", () =>
    Effect.gen(function*() {
      const good = {
        STORE_API_AUTH_URL: "https://auth.store.example",
        STORE_API_URL: "https://api.store.example",
        STORE_API_CLIENT_ID: "invented-client",
        STORE_API_CLIENT_SECRET: secret.value
      }
      const errors = [
        {},
        { STORE_API_CLIENT_SECRET: secret.value },
        { ...good, STORE_API_CLIENT_ID: "" },
        { ...good, STORE_API_CLIENT_SECRET: `${secret.value}&` },
        ...["STORE_API_AUTH_URL", "STORE_API_URL"].flatMap((name) => [
          { ...good, [name]: secret.value },
          { ...good, [name]: `https://user:${encodeURIComponent(secret.value)}@store.example` },
          { ...good, [name]: `https://store.example?client_secret=${secret.value}` },
          { ...good, [name]: `https://store.example#${secret.value}` },
          { ...good, [name]: `http://store.example/${secret.value}` },
          { ...good, [name]: `ftp://${secret.value}` }
        ])
      ]
      for (const variables of errors) {
        const error = yield* Layer.build(StoreAuth.layerConfig()).pipe(
          Effect.scoped,
          Effect.provide(FetchHttpClient.layer),
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables)))),
          Effect.flip
        )
        nothingIn(error)
        nothingIn(Either.left(error))
      }
    }))

  it.scoped("the services, what they are made of, and the state they are in", () =>
    Effect.gen(function*() {
      const credentials = ClientCredentials.make({
        clientId: "invented-client",
        clientSecret: Redacted.make(secret.value)
      })
      const source = yield* Effect.provide(
        TokenEndpoint.make({ authUrl: "https://auth.store.example", credentials }),
        FetchHttpClient.layer
      )
      const layer = StoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
        Layer.provideMerge(TokenSource.layer(() => Effect.succeed(accessToken))),
        Layer.provideMerge(FetchHttpClient.layer)
      )
      const context = yield* Layer.build(layer)
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        nothingIn(yield* provider.get)
        nothingIn(yield* provider.current)
        nothingIn(yield* provider.status)
        nothingIn(provider)
        nothingIn(yield* AuthorizedHttpClient.AuthorizedHttpClient)
        nothingIn(yield* TokenSource.TokenSource)
      }).pipe(Effect.provide(context))
      for (const value of [source, layer, context, credentials]) nothingIn(value)
    }))

  it("the errors, encoded by their schema", () => {
    const error = new AccessTokenError.TokenRefusedError({ reason: "Other", status: 400, changedByFormDecoding: true })
    nothingIn(Schema.encodeSync(AccessTokenError.AccessTokenError)(error))
  })
})
