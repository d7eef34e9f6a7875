/** nginx in front of oidc-provider, and the library as its client. Reports how both see a fault. */
import { assert } from "@effect/vitest"
import { AccessTokenError } from "@store-api/core"
import type { NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Option, type Scope } from "effect"
import * as x509 from "../../../../packages/emulator/src/internal/x509.js"
import { credentials, type Running, tokenPath } from "../../src/AuthorizationServer.js"
import * as Nginx from "../../src/Nginx.js"
import { oidcProvider } from "../../src/oidcProvider.js"
import { assertHidden, type Client, client, report } from "./client.js"

export interface Options extends Pick<Nginx.Options, "http" | "tls"> {
  /** Directives for the locations of the token endpoint and of the API. */
  readonly token?: string
  readonly api?: string
  /** The location of the token endpoint in the configuration; by default only the path. */
  readonly tokenLocation?: string
  /** Where nginx finds the token endpoint and the API; by default at the server. */
  readonly authUrl?: string | undefined
  readonly apiUrl?: string | undefined
  /** How the client connects. */
  readonly client?: NodeStoreAuth.Options["http"]
}

export interface Front extends Nginx.Running {
  /** Both at the same address of nginx. */
  readonly authUrl: string
  readonly apiUrl: string
  readonly client: Client
  /** The statuses of nginx's responses to token requests and to all others, in order. */
  readonly tokens: Effect.Effect<ReadonlyArray<number>>
  readonly calls: Effect.Effect<ReadonlyArray<number>>
}

export const server = oidcProvider.start({ life: 600 })

/** The token endpoint and the API of a server, behind nginx. */
export const before = (running: Running, options: Options = {}): Effect.Effect<Front, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { api = "", apiUrl, authUrl, http, tls, token = "", tokenLocation = `= ${tokenPath}` } = options
    const nginx = yield* Nginx.start({
      http,
      tls,
      server: `
        location ${tokenLocation} { ${token} proxy_pass ${authUrl ?? running.authUrl}${tokenPath}; }
        location / { ${api} proxy_pass ${apiUrl ?? running.apiUrl}; }`
    })
    const urls = { authUrl: nginx.url, apiUrl: nginx.url }
    const statuses = (ofTokens: boolean) =>
      Effect.map(
        nginx.requests,
        (all) => all.filter(({ path }) => path.startsWith(tokenPath) === ofTokens).map(({ status }) => status)
      )
    return {
      ...nginx,
      ...urls,
      client: yield* client(urls, credentials, options.client),
      tokens: statuses(true),
      calls: statuses(false)
    }
  })

/** An authority that only this test knows, and a certificate that it signs for a server on loopback. */
export const authority = () => {
  const issuer = x509.authority()
  return { ca: issuer.cert, tls: x509.leaf("localhost", [Buffer.from([127, 0, 0, 1])], { issuer }) }
}

/** Checks that `get` fails with an error that has these fields and shows no secret. Returns the error. */
export const refused = (
  { client: { provider } }: Front,
  fields: Partial<AccessTokenError.AccessTokenError>
): Effect.Effect<AccessTokenError.AccessTokenError, unknown> =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(provider.get)
    assert.deepInclude(error, fields)
    assertHidden(error, [credentials.clientSecret])
    return error
  })

/** Adds a row to the nginx table of the page, with the requests from nginx's log. */
export const tell = (front: Front, fault: string, outcome: unknown): Effect.Effect<void> =>
  Effect.flatMap(Effect.all([front.tokens, front.calls]), ([tokens, calls]) =>
    report("nginx", {
      "nginx": fault,
      "result for the caller": typeof outcome === "string" ? outcome : inWords(outcome),
      "token requests in nginx's log": inShort(tokens),
      "calls in nginx's log": inShort(calls)
    }))

/** An error in the words of the page: its tag and what distinguishes it. */
const inWords = (error: unknown): string => {
  if (!AccessTokenError.isAccessTokenError(error)) return String((error as { readonly _tag?: string })._tag)
  const reason = "reason" in error ? `, ${error.reason}` : ""
  return `\`${error._tag}\`${reason}${Option.isSome(error.retryAt) ? ", with `retryAt`" : ""}`
}

/** `200, 6 × 429, 200`; for many requests, a count per status. */
const inShort = (statuses: ReadonlyArray<number>): string => {
  const runs: Array<{ readonly status: number; readonly times: number }> = []
  for (const status of statuses) {
    const last = runs.at(-1)
    if (last?.status === status) runs[runs.length - 1] = { status, times: last.times + 1 }
    else runs.push({ status, times: 1 })
  }
  if (runs.length > 8) return inShort([...statuses].sort((a, b) => a - b))
  return runs.map(({ status, times }) => times === 1 ? String(status) : `${times} × ${status}`).join(", ") || "none"
}
