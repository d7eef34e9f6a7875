/**
 * The contract that core satisfies on every runtime with `fetch`: what depends on the HTTP, the timers and the output
 * of the runtime. The tests of core have everything else.
 */
import type { AuthorizedHttpClient } from "@store-api/core"
import type { Scenario } from "@store-api/emulator"
import { Array as Arr, Cause, Duration, Effect } from "effect"
import { type Check, check, equal, errorOf, holds, named, store, storeAuth } from "./Check.js"

/** No program listens on this port, and the system does not assign it. `fetch` allows it. */
const nothingListens = "http://127.0.0.1:2"

/** Reads a response, as an application does. */
const statusOf = (client: AuthorizedHttpClient.Service) =>
  Effect.flatMap(
    client.get("/orders"),
    (response) => Effect.as(response.text, response.status)
  )

/** A token is acquired, cached, renewed and revoked. */
const life = [
  check("the body is sent raw, with the exact content type", function*() {
    const { emulator, provider } = yield* store()
    yield* provider.get
    const { clientId, clientSecret } = emulator
    holds("the secret holds what a form would encode", /\+.*=.*%/.test(clientSecret))
    const { requests: [request] } = yield* emulator.view
    equal(
      "the body",
      request?.body,
      `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
    )
    equal("the type", request?.contentType, "application/x-www-form-urlencoded")
  }),

  check("calls during two lifetimes of 4 s: each gets a 200", function*() {
    const { client, emulator } = yield* store({ tokenLife: 4000 })
    const began = performance.now()
    const timed = Effect.zipLeft(Effect.timed(statusOf(client)), Effect.sleep("200 millis"))
    const calls = yield* Effect.replicateEffect(timed, 43)
    equal("the responses", Arr.dedupe(calls.map(([, status]) => status)), [200])
    const { requests } = yield* emulator.view
    const rejected = requests.filter(({ status }) => status === 401).length
    // Callers wait when less than 5 % of the lifetime is left. A slower call can meet the end of its token.
    const slowest = Math.max(...calls.map(([duration]) => Duration.toMillis(duration)))
    holds(
      `${rejected} × 401 on the wire, the slowest call took ${slowest} ms`,
      rejected === 0 || slowest > 100
    )
    const asked = yield* emulator.tokenRequests
    // Renewed when at most a quarter of the lifetime is left.
    const atMost = Math.ceil((performance.now() - began) / 3000) + 1
    holds(`${asked} token requests, 3 to ${atMost}`, asked >= 3 && asked <= atMost)
  }),

  check("a revoked token is replaced: 401, then 200, and 1 token request", function*() {
    const { client, emulator } = yield* store()
    yield* statusOf(client)
    yield* emulator.revoke
    equal("the response", yield* statusOf(client), 200)
    const { requests } = yield* emulator.view
    const onTheWire = requests.map(({ kind, status }) => `${kind} ${String(status)}`)
    equal("on the wire", onTheWire, [
      "token 200",
      "api 200",
      "api 401",
      "token 200",
      "api 200"
    ])
  })
]

const redirects = [301, 302, 303, 307, 308] as const

/** Scenarios with their error, or none if the next attempt gets a token, and the number of token requests. */
const outcomes: ReadonlyArray<
  readonly [scenario: Scenario.Name, error: string | undefined, tokenRequests: number]
> = [
  ["token/401-rfc", "TokenRefusedError, InvalidClient", 1],
  ["token/echo", "TokenRefusedError, InvalidRequest", 1],
  ["token/access-token-with-line-break", "TokenResponseError", 1],
  ["token/body-truncated", "TokenResponseError", 1],
  ["token/body-garbage", "TokenResponseError", 1],
  ["token/flood-endless", "TokenRequestError, TooLarge", 1],
  ...redirects.map((status) =>
    [`token/redirect-${status}`, "TokenRequestError, Redirect", 1] as const
  ),
  // Compressed although the request refuses it. The `fetch` of Deno then leaves that to the caller.
  ["token/unasked-gzip", "Deno" in globalThis ? "TokenResponseError" : undefined, 1],
  ["token/reset-before-headers", undefined, 2],
  ["token/reset-in-headers", undefined, 2],
  ["token/reset-in-body", undefined, 2],
  ["token/close-in-body", undefined, 2],
  ["token/bad-chunks", undefined, 2],
  ["token/503-json", undefined, 2]
]

const silent = ["token/silence", "token/silence-in-body", "token/drip"] as const

/** Every failed acquisition is a typed error within its time limit, never a defect, and does not show the secret. */
const faults = [
  ...outcomes.map(([scenario, error, tokenRequests]) =>
    check(`${scenario}: ${error ?? "a token"}`, function*() {
      const { emulator, provider } = yield* store()
      yield* emulator.fail(scenario, error === undefined ? 1 : undefined)
      if (error === undefined) yield* provider.get
      else {
        const found = yield* errorOf(provider.get)
        equal("the error", named(found), error)
        equal("the secret is shown by", leaks(found, [emulator.clientSecret]), [])
      }
      equal("token requests", yield* emulator.tokenRequests, tokenRequests)
      equal("requests elsewhere", (yield* emulator.view).elsewhere.length, 0)
    })
  ),

  ...silent.map((scenario) =>
    check(`${scenario}: TokenRequestError, Timeout, at the deadline`, function*() {
      const { emulator, provider } = yield* store({
        endpoint: { attemptTimeout: "30 seconds", deadline: "3 seconds" }
      })
      yield* emulator.fail(scenario)
      const [elapsed, error] = yield* Effect.timed(errorOf(provider.get))
      equal("the error", named(error), "TokenRequestError, Timeout")
      holds("when to ask again", error.retryAt !== undefined)
      const millis = Duration.toMillis(elapsed)
      holds(
        `${millis} ms, at the deadline, not at the end of the attempt`,
        millis > 2900 && millis < 30_000
      )
      // A pause of the machine before the request may last until the deadline.
      holds("no second token request", (yield* emulator.tokenRequests) <= 1)
    })
  )
]

const certificate = (reason: string, attempts: number) =>
  check(`an untrusted certificate: TokenRequestError, ${reason}, no token`, function*() {
    const { emulator, provider } = yield* store({ tls: true })
    holds("over TLS", emulator.url.startsWith("https:"))
    const error = yield* errorOf(provider.get)
    equal("the error", named(error), `TokenRequestError, ${reason}`)
    equal("attempts", error._tag === "TokenRequestError" && error.attempts, attempts)
    equal("token requests", yield* emulator.tokenRequests, 0)
  })

type Inspect = (value: unknown, options?: object) => string

interface Inspecting {
  readonly Bun?: { readonly inspect: Inspect }
  readonly Deno?: { readonly inspect: Inspect }
  readonly process?: {
    readonly getBuiltinModule?: (name: string) => { readonly inspect: Inspect }
  }
}

/** The ways to render a value that depend on the runtime. */
const renderings = (): ReadonlyArray<readonly [name: string, (value: unknown) => string]> => {
  const { Bun, Deno, process } = globalThis as unknown as Inspecting
  const inspect = Bun?.inspect ?? Deno?.inspect ??
    process?.getBuiltinModule?.("node:util").inspect ?? String
  return [
    ["JSON", (value) => JSON.stringify(value)],
    [
      "stack",
      (value) =>
        value instanceof Error
          ? `${value.message} ${value.stack ?? ""} ${String(value.cause)}`
          : ""
    ],
    ["Cause.pretty", (value) => Cause.pretty(Cause.fail(value), { renderErrorCause: true })],
    ["inspect", (value) => inspect(value, { depth: 20, showHidden: true })]
  ]
}

const formsOf = (secret: string) => [secret, encodeURIComponent(secret), btoa(secret)]

/** The renderings of a value that show one of these. */
const leaks = (value: unknown, secrets: ReadonlyArray<string>) =>
  renderings()
    .filter(([, render]) =>
      secrets.flatMap(formsOf).some((form) => render(value).includes(form))
    )
    .map(([name]) => name)

const careless = (text: string) => Object.assign(new Error(`It was ${text}.`), { body: text })

/** The token and the secret go only where they may, and no rendering of an error shows them. */
const secrets: ReadonlyArray<Check> = [
  {
    name: "each rendering of an error that holds a secret would be found",
    run: Effect.sync(() => {
      for (const form of formsOf("an+invented/secret%")) {
        equal(
          "found",
          leaks(careless(form), ["an+invented/secret%"]),
          renderings().map(([name]) => name)
        )
      }
    })
  },

  check(
    "nothing listens, at the endpoint or at the API: no rendering shows the secret or the token",
    function*() {
      const { emulator, options } = yield* store()
      const noEndpoint = { ...options, authUrl: nothingListens }
      const noToken = yield* errorOf((yield* storeAuth(noEndpoint)).provider.get)
      const noApi = { ...options, apiUrl: nothingListens }
      const noAnswer = yield* errorOf((yield* storeAuth(noApi)).client.get("/orders"))
      equal("the errors", [noToken, noAnswer].map(named), [
        "TokenRequestError, Transport",
        "RequestError, Transport"
      ])
      const { tokens } = yield* emulator.view
      equal("tokens", tokens.length, 1)
      for (const error of [noToken, noAnswer]) {
        equal("shown by", leaks(error, [emulator.clientSecret, ...tokens]), [])
      }
    }
  ),

  check("a request to another origin: UntrustedOriginError, and nothing is sent", function*() {
    const { client, emulator } = yield* store()
    const error = yield* errorOf(client.get(`${emulator.elsewhere}/orders`))
    equal("the error", error._tag, "UntrustedOriginError")
    const { elsewhere, requests } = yield* emulator.view
    equal("requests", [requests.length, elsewhere.length], [0, 0])
    yield* Effect.promise(() => fetch(emulator.elsewhere))
    equal("one that is sent is seen", (yield* emulator.view).elsewhere.length, 1)
  }),

  check("the API redirects to another origin: the token does not go there", function*() {
    for (const status of redirects) {
      const { client, emulator } = yield* store()
      yield* emulator.fail(`api/redirect-${status}`)
      yield* (yield* client.get("/orders")).text
      const { elsewhere, requests } = yield* emulator.view
      equal(
        `${status}, sent with the token`,
        requests.filter(({ authorized }) => authorized).length,
        1
      )
      equal(
        `${status}, with the token elsewhere`,
        elsewhere.filter(({ authorized }) => authorized).length,
        0
      )
    }
  }),

  check("the same with a header of another name: the caller gets the redirect", function*() {
    for (const status of redirects) {
      const { client, emulator } = yield* store({
        client: { header: { name: "X-Store-Token" } }
      })
      yield* emulator.fail(`api/redirect-${status}`)
      const response = yield* client.get("/orders")
      yield* response.text
      equal("the status", response.status, status)
      equal("requests elsewhere", (yield* emulator.view).elsewhere.length, 0)
    }
  })
]

/** `certificates`: whether the runtime reports that a certificate caused a failure. */
export const checks = (
  { certificates }: { readonly certificates: boolean }
): ReadonlyArray<Check> => [
  ...life,
  ...faults,
  certificates ? certificate("Certificate", 1) : certificate("Transport", 6),
  ...secrets
]
