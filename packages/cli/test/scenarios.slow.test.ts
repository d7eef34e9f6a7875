/** `store-api check` against each scenario: it names the cause that the scenario stands for, and what to do. */
import Tls from "node:tls"
import { assert, describe, it, vi } from "@effect/vitest"
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
  /^The token endpoint refused .*: check STORE_API_AUTH_URL and the (path of the token endpoint|parameters of the token request)\.$/
const noGateway = /, not to a login page or a gateway\. If it does, the client id or the secret is wrong\.$/
const allowed = /: check STORE_API_AUTH_URL and what the client is allowed/
const untrusted = /^the certificate is from an authority that this machine does not trust/
const newerTls = /^Check that STORE_API_AUTH_URL names a port that speaks TLS 1\.2 or newer\.$/
const sameEnvironment = /^Check that STORE_API_URL and STORE_API_AUTH_URL are of the same environment/
const noToken = (problem: string): Outcome => [
  4,
  /^the response contains no token$/,
  new RegExp(`^The token endpoint returned no usable token \\(${problem}.*\\): check STORE_API_AUTH_URL\\.`)
]

/** By the step that names the cause: a scenario by its name and its expectation, and what the check says. */
const causes: Readonly<Record<string, ReadonlyArray<readonly [scenario: RegExp, ...outcome: Outcome]>>> = {
  "token request": [
    [/: a token after one request$/, 0, /^a token valid for [\d hmins]+$/],
    [/429.*: a token after 2 requests$/, 0, /^a token valid for .*, after 429$/],
    [/503.*: a token after 2 requests$/, 0, /^a token valid for .*, after 503$/],
    [/fails-then-works/, 0, /, after 503, a response that broke off and 500$/],
    [/uneven-delays/, 0, /, after 503 and 500$/],
    [/stale-connection/, 0, /, after 503 and no response$/],
    [/: TokenExpiredError/, 5, /^the token cannot be used$/, /expired .*: check the system clock and the expires_in/],
    [/expires-in-.*: TokenResponseError/, ...noToken("expires_in must be a number of seconds")],
    [/access-token-/, ...noToken("access_token must be 1 to 16384 visible ASCII characters")],
    [/token-type-(?!absent)/, ...noToken("token_type must be a type other than DPoP, MAC and PoP")],
    [/body-oauth-error/, 4, /^the client id or the secret is wrong \(200\)$/, /: check the client id and secret/],
    [/token\/body-(?!html|oauth)|unasked-gzip/, ...noToken("the body must be a JSON object")],
    [/body-html/, 4, /^the response is a web page, not JSON \(200\)$/, webSite],
    [/(close|reset)-(before|in)-headers|close-on-accept/, 5, /^there was no HTTP response \(Transport\)$/, unreachable],
    [/not-http|-lengths|huge-headers|unasked-c/, 5, /^there was no HTTP response \(Transport\)$/, unreachable],
    [/(close|reset)-in-body|bad-chunks/, 5, /^there was no complete response \(Transport\)$/, unreachable],
    [/silence(-on-accept|-in-headers)?:/, 5, /^there was no HTTP response \(Timeout\)$/, tooSlow],
    [/silence-in-body|drip:/, 5, /^there was no complete response \(Timeout\)$/, tooSlow],
    // The deadline may end the last attempt at any point.
    [
      /drip-in-error/,
      5,
      /^the endpoint is not available \(503\)$|^there was no (HTTP|complete) response \(Timeout\)/,
      /: try again later\./
    ],
    [/: .* \(TooLarge\)/, 4, /^the response is too large$/, /is too large for a token: check STORE_API_AUTH_URL\./],
    [/redirect-30\d(-to-http)?:/, 4, /^it was redirected to http:\/\/127\.0\.0\.1:\d+$/, toTarget],
    [/redirect-(.*-to-itself|loop|with|to)/, 4, /^it was redirected$/, toTarget],
    [/(?<!html): .* \(InvalidRequest\)/, 4, /^the endpoint does not understand the request \(400\)$/, toBase],
    [/40[034]-html|404/, 4, /^the response is a web page, not JSON \(40[034]\)$/, webSite],
    [/401-html/, 4, /^a web page refuses access without a reason \(401\)$/, noGateway],
    [/401-[^h]/, 4, /^the client id or the secret is wrong \(401\)$/, /: check the client id and secret/],
    [/403-[^h]|405|413/, 4, /^the endpoint responded with an error/, allowed],
    [/: .* \(RateLimited\)/, 5, /^the endpoint limits the rate of requests/, /: send fewer requests\. Retry after 20/],
    [/: .* \(Unavailable\) after .* request/, 5, /^the endpoint is not available/, /: try again later\. Retry after 20/]
  ],
  "connection or token request": [
    [
      /reset-on-accept/,
      5,
      /^there is no connection to .* \(ECONNRESET\)$|^there was no HTTP response/,
      /^Check the network|^Cannot reach/
    ]
  ],
  TLS: [
    [/self-signed/, 4, untrusted, /set NODE_EXTRA_CA_CERTS/],
    [/tls-expired/, 4, /^the certificate has expired/, /^Its owner must renew it, unless the system clock is wrong\.$/],
    [/wrong-host/, 4, /^the certificate is not valid for 127\.0\.0\.1/, /^Check the host in STORE_API_AUTH_URL\.$/],
    [/tls-1\.1/, 5, /^the handshake failed/, newerTls],
    [
      /unfinished/,
      5,
      /^the handshake does not complete$/,
      /^Check that STORE_API_AUTH_URL names a port that speaks TLS\.$/
    ]
  ],
  "API call": [
    [/401-/, 7, /^the API responded with 401$/, sameEnvironment],
    [/missing-|403/, 7, /^the API responded with 40[13]$/, /^The token is valid, but not for this\./],
    [/redirect-/, 7, /^it was redirected \(30\d\)$/, /^Set STORE_API_URL to the API/],
    [/elsewhere: Untrusted/, 2, /^it was not sent$/, /^The access token may only go to .*; nothing was sent to /],
    [/only-literal-bearer/, 0, /^the API responded with 200$/]
  ]
}

const named = Object.entries(causes).flatMap(([step, rows]) =>
  rows.map(([scenario, code, said, remedy]) => ({ step, scenario, code, said, remedy }))
)

/** Plays the scenario, and expects the words of the only row that it matches. */
const play = (emulator: Emulator.Service, name: Scenario.Name) =>
  Effect.gen(function*() {
    const { expected, script } = Scenario.all[name]
    const [kind] = name.split("/")
    const rows = named.filter(({ scenario, step }) =>
      scenario.test(`${name}: ${expected}`) && (step === "API call") === (kind === "api")
    )
    assert.lengthOf(rows, 1, `${name}: ${expected}`)
    const [{ code, remedy, said, step } = assert.fail()] = rows
    yield* emulator.fail(script)
    const path = name === "api/pointed-elsewhere" ? `${emulator.elsewhere.url}/orders` : "/orders"
    const outcome = yield* check(yield* userOf(emulator), kind === "api" ? [path] : [])
    const cause = outcome.steps.find(({ failed, name }) => failed || name === step)
    assert.include(step, cause?.name ?? "no such step", name)
    assert.match(cause?.said ?? "", said, name)
    assert.match(cause?.remedy ?? "", remedy ?? /^$/, name)
    deepStrictEqual([outcome.code, outcome.failed], [code, code === 0 ? [] : [cause]], name)
    const [, status] = /token\/([45]\d\d)/.exec(name) ?? []
    if (status !== undefined) assert.include(cause?.said, status)
    deepStrictEqual(yield* emulator.elsewhere.requests, [], name)
    yield* emulator.clearFaults
  })

const [overTls = [], plain = []] = [true, false].map((tls) =>
  Scenario.names.filter((name) => Scenario.all[name].tls === tls)
)

describe("store-api check names the cause of", { timeout: 60_000, concurrent: true }, () => {
  it.live.each(plain)(
    "%s",
    (name) => Effect.scoped(Effect.flatMap(startedWith(), ({ emulator }) => play(emulator, name)))
  )

  test.live("each scenario over TLS, and of an authority with another key", function*() {
    const { emulator, user } = yield* startedWith({ tls: true })
    yield* trusting(emulator)
    for (const name of overTls) yield* play(emulator, name)
    // An authority of the same name that has another key.
    yield* trusting((yield* startedWith({ tls: true })).emulator)
    const { failed } = yield* check(user)
    deepStrictEqual(failed.map(({ name }) => name), ["TLS"])
    assert.match(failed[0]?.said ?? "", /an authority that this machine does not trust/)
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
