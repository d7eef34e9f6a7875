/** nginx in front of a server of the suite, and the library as its client. Reports how both see a fault. */
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
  /** Directives for the locations of the token endpoint and of the API. */
  readonly token?: string | undefined
  readonly api?: string | undefined
  /** The location of the token endpoint in the configuration; by default only the path. */
  readonly tokenLocation?: string | undefined
}

export interface Front extends Nginx.Running {
  /** The server, through nginx. */
  readonly running: Running
  /** The statuses of nginx's responses to token requests and to all others, in order. */
  readonly tokens: Effect.Effect<ReadonlyArray<number>>
  readonly calls: Effect.Effect<ReadonlyArray<number>>
}

/** The token endpoint and the API of a server, both at the same address of nginx. */
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

/** The library as an application uses it. */
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

/** Checks that no rendering of an error shows one of these, and that the search would find one. */
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

/** Adds a row to the nginx table of the page, with the requests from nginx's log. */
export const tell = (front: Front, what: { readonly fault: string; readonly outcome: string }): Effect.Effect<void> =>
  Effect.flatMap(Effect.all([front.tokens, front.calls]), ([tokens, calls]) =>
    report("nginx", {
      "nginx": what.fault,
      "result for the caller": what.outcome,
      "token requests in nginx's log": inShort(tokens),
      "calls in nginx's log": inShort(calls)
    }))
