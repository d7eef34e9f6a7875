/** The token and the secret go only where they may, and no rendering of an error shows them. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Cause, Context, Effect, Inspectable, Redacted } from "effect"
import { type Check, equal, errorOf, holds, nothingListens, options, storeAuth } from "../Check.js"
import { Laboratory } from "../Laboratory.js"

interface Inspecting {
  readonly Bun?: { readonly inspect: (value: unknown) => string }
  readonly Deno?: { readonly inspect: (value: unknown, options: object) => string }
  readonly process?: {
    readonly getBuiltinModule?: (name: string) => { readonly inspect: (value: unknown, options: object) => string }
  }
}

/** All ways to render a value: those of the language, of Effect, and of the runtime. */
const renderings = (): ReadonlyArray<readonly [name: string, (value: unknown) => string]> => {
  const { Bun, Deno, process } = globalThis as unknown as Inspecting
  const node = process?.getBuiltinModule?.("node:util")
  const deep = { depth: 20, showHidden: true }
  return [
    ["String", String],
    ["JSON", (value) => JSON.stringify(value)],
    ["stack", (value) => value instanceof Error ? `${value.message} ${value.stack ?? ""} ${String(value.cause)}` : ""],
    ["Cause.pretty", (value) => Cause.pretty(Cause.fail(value), { renderErrorCause: true })],
    ["a defect", (value) => Cause.pretty(Cause.die(value), { renderErrorCause: true })],
    ["Inspectable", (value) => Inspectable.toStringUnknown(value)],
    ...(Bun === undefined ? [] : [["Bun.inspect", (value: unknown) => Bun.inspect(value)] as const]),
    ...(Deno === undefined ? [] : [["Deno.inspect", (value: unknown) => Deno.inspect(value, deep)] as const]),
    ...(node === undefined ? [] : [["util.inspect", (value: unknown) => node.inspect(value, deep)] as const])
  ]
}

const formsOf = (secret: string) => [secret, encodeURIComponent(secret), btoa(secret)]

/** The renderings of a value that show one of these. */
const leaks = (value: unknown, secrets: ReadonlyArray<string>) =>
  renderings()
    .filter(([, render]) => secrets.flatMap(formsOf).some((form) => render(value).includes(form)))
    .map(([name]) => name)

const careless = (text: string) => Object.assign(new Error(`It was ${text}.`), { body: text })

/** Responses with which an endpoint tries to extract a secret. */
const scenarios = [
  "token/echo",
  "token/401-rfc",
  "token/body-garbage",
  "token/redirect-307",
  "token/access-token-with-line-break"
]

const redirects = [301, 302, 303, 307, 308]

export const checks: ReadonlyArray<Check> = [
  {
    name: "each rendering of an error that holds a secret would be found",
    run: Effect.gen(function*() {
      const all = renderings().map(([name]) => name)
      yield* holds("renderings", all.length >= 6)
      for (const form of formsOf("an+invented/secret%")) {
        yield* equal("found", leaks(careless(form), ["an+invented/secret%"]), all)
      }
    })
  },
  ...scenarios.map((scenario): Check => ({
    name: `${scenario}: no rendering of the error shows the secret`,
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      yield* emulator.fail(scenario)
      const context = yield* storeAuth(options(emulator))
      const error = yield* errorOf(Context.get(context, AccessTokenProvider.AccessTokenProvider).get)
      yield* equal("shown by", leaks(error, [emulator.clientSecret]), [])
    })
  })),
  {
    name: "nothing listens, at the endpoint or at the API: no rendering shows the secret or the token",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const down = yield* storeAuth({
        ...options(emulator),
        authUrl: nothingListens,
        endpoint: { deadline: "500 millis" }
      })
      const noToken = yield* errorOf(Context.get(down, AccessTokenProvider.AccessTokenProvider).get)
      const noApi = yield* storeAuth({ ...options(emulator), apiUrl: nothingListens })
      const noAnswer = yield* errorOf(Context.get(noApi, AuthorizedHttpClient.AuthorizedHttpClient).get("/orders"))
      yield* equal("the errors", [noToken._tag, noAnswer._tag], ["TokenRequestError", "RequestError"])
      const { tokens } = yield* emulator.view
      yield* equal("tokens", tokens.length, 1)
      for (const error of [noToken, noAnswer]) {
        yield* equal("shown by", leaks(error, [emulator.clientSecret, ...tokens]), [])
      }
    })
  },
  {
    name: "a request to another origin: UntrustedOriginError, and nothing is sent",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const context = yield* storeAuth(options(emulator))
      const client = Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
      const error = yield* errorOf(client.get(`${emulator.elsewhere}/orders`))
      yield* equal("the error", error._tag, "UntrustedOriginError")
      const { elsewhere, requests } = yield* emulator.view
      yield* equal("requests", [requests.length, elsewhere.length], [0, 0])
      yield* Effect.provide(HttpClient.get(emulator.elsewhere), FetchHttpClient.layer)
      yield* equal("one that is sent is seen", (yield* emulator.view).elsewhere.length, 1)
    })
  },
  {
    name: "http beyond this machine: ConfigurationError",
    run: Effect.gen(function*() {
      const build = storeAuth({
        authUrl: "http://auth.store.example",
        apiUrl: "http://api.store.example",
        clientId: "invented",
        clientSecret: Redacted.make("invented")
      })
      yield* equal("the error", (yield* errorOf(build))._tag, "ConfigurationError")
    })
  },
  {
    name: "the API redirects to another origin: the token does not go there",
    run: Effect.forEach(redirects, (status) =>
      Effect.gen(function*() {
        const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
        yield* emulator.fail(`api/redirect-${status}`)
        const context = yield* storeAuth(options(emulator))
        const response = yield* Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient).get("/orders")
        yield* response.text
        const { elsewhere, requests, tokens } = yield* emulator.view
        yield* equal(`${status}, sent with the token`, requests.filter(({ authorized }) => authorized).length, 1)
        yield* equal("tokens", tokens.length, 1)
        yield* equal(`${status}, with the token elsewhere`, elsewhere.filter(({ authorized }) => authorized).length, 0)
      }), { discard: true })
  },
  {
    name: "the same with a header of another name: the caller gets the redirect",
    run: Effect.forEach(redirects, (status) =>
      Effect.gen(function*() {
        const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
        yield* emulator.fail(`api/redirect-${status}`)
        const context = yield* storeAuth({ ...options(emulator), client: { header: { name: "X-Store-Token" } } })
        const response = yield* Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient).get("/orders")
        yield* response.text
        yield* equal("the status", response.status, status)
        yield* equal("requests elsewhere", (yield* emulator.view).elsewhere.length, 0)
      }), { discard: true })
  }
]
