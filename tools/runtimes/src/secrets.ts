/** The token and the secret go only where they may, and no rendering of an error shows them. */
import { Cause, Effect, Inspectable } from "effect"
import { type Check, check, equal, errorOf, holds, nothingListens, store, storeAuth } from "./Check.js"

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
    run: Effect.sync(() => {
      const all = renderings().map(([name]) => name)
      holds("renderings", all.length >= 6)
      for (const form of formsOf("an+invented/secret%")) {
        equal("found", leaks(careless(form), ["an+invented/secret%"]), all)
      }
    })
  },

  ...scenarios.map((scenario) =>
    check(`${scenario}: no rendering of the error shows the secret`, function*() {
      const { emulator, provider } = yield* store()
      yield* emulator.fail(scenario)
      equal("shown by", leaks(yield* errorOf(provider.get), [emulator.clientSecret]), [])
    })
  ),

  check("nothing listens, at the endpoint or at the API: no rendering shows the secret or the token", function*() {
    const { emulator, options } = yield* store()
    const noEndpoint = { ...options, authUrl: nothingListens, endpoint: { deadline: "500 millis" } } as const
    const noToken = yield* errorOf((yield* storeAuth(noEndpoint)).provider.get)
    const noApi = { ...options, apiUrl: nothingListens }
    const noAnswer = yield* errorOf((yield* storeAuth(noApi)).client.get("/orders"))
    equal("the errors", [noToken._tag, noAnswer._tag], ["TokenRequestError", "RequestError"])
    const { tokens } = yield* emulator.view
    equal("tokens", tokens.length, 1)
    for (const error of [noToken, noAnswer]) {
      equal("shown by", leaks(error, [emulator.clientSecret, ...tokens]), [])
    }
  }),

  check("a request to another origin: UntrustedOriginError, and nothing is sent", function*() {
    const { client, emulator } = yield* store()
    const error = yield* errorOf(client.get(`${emulator.elsewhere}/orders`))
    equal("the error", error._tag, "UntrustedOriginError")
    const { elsewhere, requests } = yield* emulator.view
    equal("requests", [requests.length, elsewhere.length], [0, 0])
    yield* Effect.promise(() => fetch(emulator.elsewhere))
    equal("one that is sent is seen", (yield* emulator.view).elsewhere.length, 1)
  }),

  check("http beyond this machine: ConfigurationError", function*() {
    const beyond = store({ authUrl: "http://auth.store.example", apiUrl: "http://api.store.example" })
    equal("the error", (yield* errorOf(beyond))._tag, "ConfigurationError")
  }),

  check("the API redirects to another origin: the token does not go there", function*() {
    for (const status of redirects) {
      const { client, emulator } = yield* store()
      yield* emulator.fail(`api/redirect-${status}`)
      yield* (yield* client.get("/orders")).text
      const { elsewhere, requests, tokens } = yield* emulator.view
      equal(`${status}, sent with the token`, requests.filter(({ authorized }) => authorized).length, 1)
      equal("tokens", tokens.length, 1)
      equal(`${status}, with the token elsewhere`, elsewhere.filter(({ authorized }) => authorized).length, 0)
    }
  }),

  check("the same with a header of another name: the caller gets the redirect", function*() {
    for (const status of redirects) {
      const { client, emulator } = yield* store({ client: { header: { name: "X-Store-Token" } } })
      yield* emulator.fail(`api/redirect-${status}`)
      const response = yield* client.get("/orders")
      yield* response.text
      equal("the status", response.status, status)
      equal("requests elsewhere", (yield* emulator.view).elsewhere.length, 0)
    }
  })
]
