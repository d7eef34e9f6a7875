/** The servers that the command is driven against, as alike as their users see them. */
import { assert } from "@effect/vitest"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import * as oidc from "./oidcProvider.js"
import { demoSecret, newUser, type User } from "./user.js"

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
  oidc.makeOidcProvider,
  ({ tokenRequests, tokens, url }) => ({
    ...oidc.client,
    url,
    tokens: Effect.sync(tokens),
    tokenRequests: Effect.sync(tokenRequests),
    orders: oidc.orders,
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
