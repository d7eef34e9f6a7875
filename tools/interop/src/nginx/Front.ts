/** nginx before a server of the suite, the product before nginx, and what both sides say of a fault. */
import { assert } from "@effect/vitest"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer, Option, Redacted, type Scope } from "effect"
import type { Running } from "../AuthorizationServer.js"
import { tokenPath } from "../loopback.js"
import { report } from "../page.js"
import { shows } from "../renderings.js"
import * as Nginx from "./Nginx.js"

export interface Options extends Pick<Nginx.Options, "http" | "tls"> {
  /** Directives of the location of the token endpoint, and of that of the API. */
  readonly token?: string | undefined
  readonly api?: string | undefined
  /** The location of the token endpoint in the configuration; by default only the path. */
  readonly tokenLocation?: string | undefined
}

export interface Front extends Nginx.Running {
  /** The server as it is seen through nginx. */
  readonly running: Running
  /** The statuses that nginx gave to token requests and to all others, in their order. */
  readonly tokens: Effect.Effect<ReadonlyArray<number>>
  readonly calls: Effect.Effect<ReadonlyArray<number>>
}

/** The token endpoint and the API of a server, both at one address of nginx. */
export const before = (running: Running, options: Options): Effect.Effect<Front, never, Scope.Scope> =>
  Effect.map(
    Nginx.start({
      http: options.http,
      tls: options.tls,
      server: `
        location ${options.tokenLocation ?? `= ${tokenPath}`} { ${
        options.token ?? ""
      } proxy_pass ${running.authUrl}${tokenPath}; }
        location / { ${options.api ?? ""} proxy_pass ${running.apiUrl}; }`
    }),
    (nginx) => {
      const statuses = (wanted: (path: string) => boolean) =>
        Effect.map(nginx.requests, (all) => all.filter(({ path }) => wanted(path)).map(({ status }) => status))
      return {
        ...nginx,
        running: { ...running, authUrl: nginx.url, apiUrl: nginx.url },
        tokens: statuses((path) => path.startsWith(tokenPath)),
        calls: statuses((path) => !path.startsWith(tokenPath))
      }
    }
  )

export interface Client {
  readonly provider: AccessTokenProvider.Service
  readonly api: AuthorizedHttpClient.Service
}

/** The product as a user has it. */
export const client = (
  { apiUrl, authUrl, credentials }: Running,
  http?: NodeStoreAuth.Options["http"]
): Effect.Effect<Client, never, Scope.Scope> =>
  Layer.build(NodeStoreAuth.layer({ authUrl, apiUrl, ...credentials, http })).pipe(
    Effect.map((context) => ({
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      api: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    })),
    Effect.orDie
  )

/** Calls the API and reads the response to its end. */
export const call = ({ api }: Client, path = "/v1/orders") =>
  Effect.flatMap(api.get(path), (response) => Effect.as(response.text, response.status))

/** None of these is in anything that an error may be printed as; a secret in an error would be found. */
export const assertHidden = (error: unknown, secrets: ReadonlyArray<Redacted.Redacted>) => {
  assert.isNotEmpty(secrets)
  for (const secret of secrets.map(Redacted.value)) {
    assert.isTrue(shows(new Error("control", { cause: { body: `client_secret=${secret}` } }), secret))
    assert.isFalse(shows(error, secret))
  }
}

/** An error in the words of the page: its tag and what distinguishes it. */
export const inWords = (error: unknown): string => {
  if (!AccessTokenError.isAccessTokenError(error)) return String((error as { readonly _tag?: string })._tag)
  const retryAt = Option.isSome(error.retryAt) ? ", with `retryAt`" : ""
  return "reason" in error ? `\`${error._tag}\`, ${error.reason}${retryAt}` : `\`${error._tag}\`${retryAt}`
}

/** `200, 6 × 429, 200`; of many, how often each. */
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

/** A row of the page's table of nginx, the requests as its log has them. */
export const tell = (front: Front, what: { readonly fault: string; readonly outcome: string }): Effect.Effect<void> =>
  Effect.flatMap(Effect.all([front.tokens, front.calls]), ([tokens, calls]) =>
    report("nginx", {
      "in front": what.fault,
      "what the caller has": what.outcome,
      "token requests in nginx's log": inShort(tokens),
      "calls in nginx's log": inShort(calls)
    }))
