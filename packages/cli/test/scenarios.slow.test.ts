/** `store-api check` against a scenario for each cause: it names the cause, and what to do. */
import Tls from "node:tls"
import { assert, describe, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Scenario } from "@store-api/emulator"
import { Effect, Option } from "effect"
import { test } from "../../core/test/support/test.js"
import { check, startedWith, userOf } from "./support/cli.js"

type Outcome = readonly [code: number, said: RegExp, remedy?: RegExp]

const unreachable =
  /^Cannot reach the token endpoint \(6 attempts.*\): check STORE_API_AUTH_URL, the network and the proxy/
const tooSlow = /^The token endpoint did not respond in time .*: try again later\./
const webSite = /^Check STORE_API_AUTH_URL: it leads to a web site or a login page/
const toTarget = /: set STORE_API_AUTH_URL to its target\./
const toBase =
  /^The token endpoint refused .*: check that STORE_API_AUTH_URL is the base of the access-token service\.$/
const noGateway = /, not to a login page or a gateway\. If it does, the client id or the secret is wrong\.$/
const allowed = /: check STORE_API_AUTH_URL and what the client is allowed/
const untrusted = /^the certificate is from an authority that this machine does not trust/
const sameEnvironment = /^Check that STORE_API_URL and STORE_API_AUTH_URL are of the same environment/
const noToken = (problem: string): Outcome => [
  4,
  /^the response contains no token$/,
  new RegExp(`^The token endpoint returned no usable token \\(${problem}.*\\): check STORE_API_AUTH_URL\\.`)
]

type Row = readonly [scenario: Scenario.Name, ...Outcome]

/** The step "token request". */
const tokenRequests: ReadonlyArray<Row> = [
  ["token/specification", 0, /^a token valid for [\d hmins]+$/],
  ["token/429-retry-after-seconds", 0, /^a token valid for .*, after 429$/],
  ["token/fails-then-works", 0, /, after 503, a response that broke off and 500$/],
  ["token/stale-connection", 0, /, after 503 and no response$/],
  ["token/expires-in-zero", 5, /^the token cannot be used$/, /expired .*: check the system clock and the expires_in/],
  ["token/expires-in-word", ...noToken("expires_in must be a number of seconds")],
  ["token/access-token-absent", ...noToken("access_token must be 1 to 16384 visible ASCII characters")],
  ["token/token-type-other", ...noToken("token_type must be a type other than DPoP, MAC and PoP")],
  ["token/body-array", ...noToken("the body must be a JSON object")],
  ["token/body-oauth-error", 4, /^the client id or the secret is wrong \(200\)$/, /: check the client id and secret/],
  ["token/body-html", 4, /^the response is a web page, not JSON \(200\)$/, webSite],
  ["token/close-before-headers", 5, /^there was no HTTP response \(Transport\)$/, unreachable],
  ["token/bad-chunks", 5, /^there was no complete response \(Transport\)$/, unreachable],
  ["token/silence", 5, /^there was no HTTP response \(Timeout\)$/, tooSlow],
  ["token/drip", 5, /^there was no complete response \(Timeout\)$/, tooSlow],
  ["token/flood-endless", 4, /^the response is too large$/, /is too large for a token: check STORE_API_AUTH_URL\./],
  ["token/redirect-302", 4, /^it was redirected to http:\/\/127\.0\.0\.1:\d+$/, toTarget],
  ["token/redirect-loop", 4, /^it was redirected$/, toTarget],
  ["token/400-rfc", 4, /^the endpoint does not understand the request \(400\)$/, toBase],
  ["token/403-html", 4, /^the response is a web page, not JSON \(403\)$/, webSite],
  ["token/401-html", 4, /^a web page refuses access without a reason \(401\)$/, noGateway],
  ["token/401-rfc", 4, /^the client id or the secret is wrong \(401\)$/, /: check the client id and secret/],
  ["token/405", 4, /^the endpoint responded with an error.*405/, allowed],
  ["token/429-always", 5, /^the endpoint limits the rate of requests.*429/, /: send fewer requests\. Retry after 20/],
  ["token/500-json", 5, /^the endpoint is not available \(500\)/, /: try again later\. Retry after 20/]
]

/** The step "TLS". */
const handshakes: ReadonlyArray<Row> = [
  ["token/tls-self-signed", 4, untrusted, /set NODE_EXTRA_CA_CERTS/],
  [
    "token/tls-expired",
    4,
    /^the certificate has expired/,
    /^Its owner must renew it, unless the system clock is wrong/
  ],
  [
    "token/tls-wrong-host",
    4,
    /^the certificate is not valid for 127\.0\.0\.1/,
    /^Check the host in STORE_API_AUTH_URL/
  ],
  ["token/tls-1.1-only", 5, /^the handshake failed/, /names a port that speaks TLS 1\.2 or newer\.$/],
  ["token/tls-unfinished-handshake", 5, /^the handshake does not complete$/, /names a port that speaks TLS\.$/]
]

/** The step "API call". */
const calls: ReadonlyArray<Row> = [
  ["api/401-always", 7, /^the API responded with 401$/, sameEnvironment],
  ["api/missing-scope", 7, /^the API responded with 401$/, /^The token is valid, but not for this\./],
  ["api/403", 7, /^the API responded with 403$/, /^The token is valid, but not for this\./],
  ["api/redirect-307", 7, /^it was redirected \(307\)$/, /^Set STORE_API_URL to the API/],
  ["api/pointed-elsewhere", 2, /^it was not sent$/, /^The access token may only go to .*; nothing was sent to /],
  ["api/only-literal-bearer", 0, /^the API responded with 200$/]
]

const play = (emulator: Emulator.Service, step: string, [name, code, said, remedy]: Row) =>
  Effect.gen(function*() {
    yield* emulator.fail(Scenario.get(name))
    const path = name === "api/pointed-elsewhere" ? `${emulator.elsewhere.url}/orders` : "/orders"
    const outcome = yield* check(yield* userOf(emulator), step === "API call" ? [path] : [])
    const cause = outcome.steps.find(({ name }) => name === step)
    assert.match(cause?.said ?? "", said, name)
    assert.match(cause?.remedy ?? "", remedy ?? /^$/, name)
    deepStrictEqual([outcome.code, outcome.failed], [code, code === 0 ? [] : [cause]], name)
    deepStrictEqual(yield* emulator.elsewhere.requests, [], name)
    yield* emulator.clearFaults
  })

const plain = Object.entries({ "token request": tokenRequests, "API call": calls }).flatMap(([step, rows]) =>
  rows.map((row) => [row[0], step, row] as const)
)

describe("store-api check names the cause of", { timeout: 60_000, concurrent: true }, () => {
  test.live.each(plain)("%s, in the step %s", function*([, step, row]) {
    yield* play((yield* startedWith()).emulator, step, row)
  })

  test.live("each fault of TLS, and of an authority of the same name with another key", function*() {
    const { emulator, user } = yield* startedWith({ tls: true })
    yield* trusting(emulator)
    for (const row of handshakes) yield* play(emulator, "TLS", row)
    yield* trusting((yield* startedWith({ tls: true })).emulator)
    const { failed } = yield* check(user)
    deepStrictEqual(failed.map(({ name }) => name), ["TLS"])
    assert.match(failed[0]?.said ?? "", untrusted)
  })
})

const { createSecureContext } = Tls

/** Clients of this process trust the CA of the emulator alone. Node reads NODE_EXTRA_CA_CERTS only when it starts. */
const trusting = ({ ca }: Emulator.Service) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      vi.spyOn(Tls, "createSecureContext").mockImplementation((options) =>
        createSecureContext({ ca: Option.getOrThrow(ca), ...options })
      )
    ),
    (spy) => Effect.sync(() => spy.mockRestore())
  )
