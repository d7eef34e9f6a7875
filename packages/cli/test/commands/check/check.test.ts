/** `store-api check` names the cause. */
import * as Http from "node:http"
import * as Net from "node:net"
import Tls from "node:tls"
import { assert, describe, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault, Scenario } from "@store-api/emulator"
import { listen } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import {
  check,
  demoSecret,
  type Expected,
  expectFailedStep,
  expectRefusal,
  onTerminal,
  run,
  started,
  startedWith,
  type User,
  userOf,
  withEnv,
  without,
  withProxies
} from "../../support/cli.js"

const nobody = "http://127.0.0.1:9"

const checkAsJson = (user: User) =>
  Effect.map(run(user, ["check", "--json"]), ({ code, stderr, stdout }) => {
    deepStrictEqual([stderr, stdout.split("\n").length], ["", 2])
    const { ok, steps } = JSON.parse(stdout) as {
      readonly ok: boolean
      readonly steps: ReadonlyArray<Readonly<Record<string, unknown>>>
    }
    return { code, ok, steps }
  })

test.live("check --json prints one object with each step", function*() {
  const { code, ok, steps } = yield* checkAsJson((yield* started).user)
  deepStrictEqual([code, ok, steps.length], [0, true, 5])
  deepStrictEqual(Object.keys(steps[0] ?? {}), ["step", "ok", "millis", "detail"])
})

test.live("check --json prints the remedy of the step that fails", function*() {
  const user = withEnv((yield* started).user, { STORE_API_AUTH_URL: nobody })
  const { code, ok, steps } = yield* checkAsJson(user)
  deepStrictEqual([code, ok], [5, false])
  const { millis: _, ...last } = steps.at(-1) ?? {}
  deepStrictEqual(last, {
    step: "connection",
    ok: false,
    detail: "127.0.0.1:9 refused the connection (ECONNREFUSED)",
    remedy: "Check host and port in STORE_API_AUTH_URL, and whether the service runs there."
  })
})

test.live("check names the origin of each setting", function*() {
  const { user } = yield* started
  const expected = [
    5,
    "connection",
    /ECONNREFUSED/,
    /Check host and port in --auth-url,/
  ] as const
  const [configuration] = yield* expectFailedStep(user, ["--auth-url", `${nobody}/`], expected)
  assert.strictEqual(
    configuration?.message,
    "--auth-url from the flags; STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET from the environment; " +
      `POST ${nobody}/v1/oauth/accesstoken`
  )
})

test.live("check names the prompt as the origin of the secret", function*() {
  const user = without((yield* started).user, "STORE_API_CLIENT_SECRET")
  const { code, screen } = yield* onTerminal(user, ["check"], {
    typed: `${demoSecret}\r`,
    columns: 300
  })
  assert.strictEqual(code, 0)
  assert.match(
    screen,
    /^Client secret \(not shown\): \r\n.*; client secret from the prompt; POST/
  )
})

test.live("check does not use a cached token", function*() {
  const { emulator, user } = yield* started
  yield* run(user, ["token"], { shows: true })
  yield* check(user)
  assert.lengthOf(yield* emulator.requests, 2)
})

test.live("check does not cache its token", function*() {
  const { user } = yield* started
  yield* check(user)
  deepStrictEqual((yield* run(user, ["status"])).code, 5)
})

type Variables = Readonly<Record<string, string>>

const url = (what: string, url: string, remedy: RegExp) =>
  ["STORE_API_AUTH_URL", "STORE_API_URL"].map((name): readonly [string, Variables, RegExp] =>
    [
      `${name} ${what}`,
      { [name]: url },
      new RegExp(`${name}.*${remedy.source}`)
    ] as const
  )

const proxy = (
  what: string,
  name: string,
  proxy: string
): readonly [string, Variables, RegExp] => {
  const remedy = new RegExp(`${name} must be an http:// or https:// URL.*percent-encoded`)
  return [`${name} ${what}, also for this machine`, { [name]: proxy }, remedy]
}

test.live.each<readonly [string, Variables, RegExp]>([
  ...url("is not a URL", "canary", /is not a URL/),
  ...url("has a query", "https://store.example/?canary", /must not have a query/),
  ...url("has a fragment", "https://store.example/#canary", /must not have a fragment/),
  ...url("has a user name", "https://canary@store.example", /must not contain a user name/),
  ...url("is of a foreign scheme", "ftp://store.example", /must be an https URL/),
  ...url("is of another machine, over http", "http://store.example", /--allow-insecure/),
  proxy("has no scheme", "HTTPS_PROXY", "proxy.example:3128"),
  proxy("is an address without a scheme", "HTTP_PROXY", "10.0.0.1:3128"),
  proxy(
    "has a password that is not encoded",
    "https_proxy",
    "http://user:canary%@127.0.0.1:3128"
  ),
  proxy("is SOCKS", "http_proxy", "socks5://127.0.0.1:1080")
])(
  "check fails at the configuration like other commands, before it sends anything: %s",
  function*([, variables, remedy]) {
    const { emulator, user } = yield* started
    const wrong = yield* withProxies(user, variables)
    // Without a path, the check does not need the API, yet names what is wrong with it.
    for (const args of [[], ["/orders"]]) {
      const steps = yield* expectFailedStep(wrong, args, [
        3,
        "configuration",
        /missing or cannot be used/,
        remedy
      ])
      assert.lengthOf(steps, 1)
      assert.notInclude(JSON.stringify(steps), "canary")
    }
    yield* expectRefusal(wrong, "call /orders", 3, remedy)
    deepStrictEqual(yield* emulator.requests, [])
  }
)

test.live("check fails at the configuration if a setting is missing", function*() {
  const { user } = yield* started
  const expected = [
    3,
    "configuration",
    /missing or cannot be used/,
    /STORE_API_CLIENT_ID is not set/
  ] as const
  yield* expectFailedStep(without(user, "STORE_API_CLIENT_ID"), [], expected)
})

/** A server that accepts connections and sends nothing; `asked` waits until something is sent to it. */
const silent = Effect.gen(function*() {
  const asked = yield* Deferred.make<void>()
  const { port } = yield* listen(Net.createServer((socket) => {
    socket.once("data", () => Deferred.unsafeDone(asked, Effect.void))
  }))
  return { at: `127.0.0.1:${port}`, asked: Deferred.await(asked) }
})

const elsewhere = { STORE_API_AUTH_URL: "https://auth.store.example" }

test.each<
  [name: string, variable: string, scheme: string, expected: Expected, others?: User["env"]]
>([
  ["a server", "STORE_API_AUTH_URL", "https", [
    5,
    "TLS",
    /\(no response in 10 seconds\)/,
    /STORE_API_AUTH_URL/
  ]],
  ["a proxy", "HTTPS_PROXY", "http", [
    5,
    "proxy tunnel",
    /no tunnel to .*:443 \(no resp/,
    /HTTPS_PROXY/
  ], elsewhere],
  ["an endpoint", "STORE_API_AUTH_URL", "http", [
    5,
    "token request",
    /was no response$/,
    /in time.*try again later/
  ]],
  ["an API", "STORE_API_URL", "http", [
    6,
    "API call",
    /no response in time/,
    /STORE_API_URL/
  ]]
])(
  "check names %s that accepts without a response after 10 seconds",
  function*([, variable, scheme, expected, others]) {
    yield* TestClock.setTime(Date.now())
    const { asked, at } = yield* silent
    const user = yield* withProxies((yield* started).user, {
      ...others,
      [variable]: `${scheme}://${at}`
    })
    const fiber = yield* Effect.fork(expectFailedStep(user, ["/orders"], expected))
    yield* asked
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(fiber)
  }
)

// No name has more than 63 letters: the resolver rejects it without a query.
const unknown = `https://${"x".repeat(64)}.example`
const rateLimit = Fault.status(429, { headers: { "Retry-After": "0" } })
const dateOf = (minutes: number) => ({
  headers: { Date: new Date(Date.now() + minutes * 60_000).toUTCString() }
})
const api = { on: "api" } as const
const html = { ...api, headers: { "Content-Type": "text/html" } }
const isScript = (wrong: User["env"] | Fault.Script): wrong is Fault.Script =>
  Array.isArray(wrong) || "_tag" in wrong
const toApi = Fault.status(401, {
  headers: { "WWW-Authenticate": "Bearer realm=\"an API\"" },
  times: Infinity
})

test.live.each<[name: string, User["env"] | Fault.Script, ...Expected]>([
  [
    "an unknown host",
    { STORE_API_AUTH_URL: unknown },
    5,
    "name lookup",
    /is not known \(ENOTFOUND\)/,
    /the host in/
  ],
  [
    "a refused connection",
    { STORE_API_AUTH_URL: nobody },
    5,
    "connection",
    /ECONNREFUSED/,
    /host and port in/
  ],
  [
    "an unreachable API",
    { STORE_API_URL: nobody },
    6,
    "API connection",
    /refused/,
    /STORE_API_URL/
  ],
  [
    "a refusal after a rate limit",
    [rateLimit, Fault.status(403)],
    4,
    "token request",
    /with 403, after 429$/,
    /403/
  ],
  [
    "an authUrl that leads to an API",
    toApi,
    4,
    "token request",
    /with 401/,
    /AUTH_URL, which leads to a protected/
  ],
  ["404 of the API", Fault.status(404, api), 7, "API call", /responded with 404/, /path/],
  ["429 of the API", Fault.status(429, api), 7, "API call", /responded with 429/, /Wait/],
  [
    "503 of the API",
    Fault.status(503, api),
    7,
    "API call",
    /responded with 503/,
    /the API has failed/
  ],
  [
    "a page of the API",
    Fault.body("<html>", html),
    7,
    "API call",
    /with 200 and a web page$/,
    /STORE_API_URL/
  ]
])("check names %s", function*([, wrong, ...expected]) {
  const { emulator, user } = yield* started
  if (isScript(wrong)) yield* emulator.fail(wrong)
  yield* expectFailedStep(isScript(wrong) ? user : withEnv(user, wrong), ["/orders"], expected)
})

test.live("check names no target of a redirect that contains the secret", function*() {
  const secret = "another-invented-secret"
  const { user } = yield* startedWith(
    {},
    Fault.redirect(302, { location: `https://${secret}.example/` })
  )
  const expected = [
    4,
    "token request",
    /^the endpoint responded with 302$/,
    /to its target/
  ] as const
  yield* expectFailedStep(withEnv(user, { STORE_API_CLIENT_SECRET: secret }), [], expected)
})

test.live("check names a server without TLS", function*() {
  const { emulator, user } = yield* started
  const wrong = withEnv(user, {
    STORE_API_AUTH_URL: emulator.url.replace("http:", "https:")
  })
  yield* expectFailedStep(wrong, [], [5, "TLS", /does not speak TLS/, /Check scheme and port/])
})

test.live.each(
  [
    [5, "STORE_API_AUTH_URL", "token request", /^there was no response$/],
    [6, "STORE_API_URL", "API call", /no response/]
  ] as const
)(
  "check exits with code %i if the URL of a server with TLS begins with http: %s",
  function*([code, variable, step, message]) {
    const { emulator: { url } } = yield* startedWith({ tls: true })
    const user = withEnv((yield* started).user, {
      [variable]: url.replace("https:", "http:")
    })
    const remedy = new RegExp(` If its port speaks TLS, use https:// in ${variable}\\.$`)
    yield* expectFailedStep(user, ["/orders"], [code, step, message, remedy])
  }
)

test.live.each(
  [["ahead of", -5, /5 min \d+ s ahead of/], ["behind", 5, /[45] min \d+ s behind/]] as const
)(
  "check names a clock that is five minutes %s the server's",
  function*([, minutes, message]) {
    const { user } = yield* startedWith({}, Fault.fields({}, dateOf(minutes)))
    const steps = yield* expectFailedStep(user, [], [
      3,
      "clock",
      message,
      /Set the system clock/
    ])
    assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
  }
)

test.live("check names a clock that is an hour off beside a refusal", function*() {
  const { user } = yield* startedWith({}, Fault.status(400, dateOf(-60)))
  const { code, failed } = yield* check(user)
  deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
})

/** A proxy that leads one name to the emulator, and a server that closes each connection. */
const startProxies = Effect.gen(function*() {
  const { emulator, user } = yield* started
  const server = Http.createServer().on("connect", (request, socket: Net.Socket) => {
    const login = request.headers["proxy-authorization"]
    if (login === undefined || login === `Basic ${btoa("user:wrong")}`) {
      return void socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    }
    if (request.url !== "auth.store.example:80") {
      return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
    }
    const upstream = Net.connect(Number(new URL(emulator.url).port), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on("error", () => socket.destroy())
  })
  const addressOf = (server: Net.Server) =>
    Effect.map(listen(server), ({ port }) => `127.0.0.1:${port}`)
  return {
    user,
    proxy: yield* addressOf(server),
    closing: yield* addressOf(Net.createServer((socket) => socket.destroy()))
  }
})

/** The name of another machine goes through a proxy. */
const throughProxy = (user: User, proxy: string, env: User["env"] = {}) =>
  withProxies(user, {
    STORE_API_AUTH_URL: "http://auth.store.example",
    HTTP_PROXY: `http://${proxy}`,
    ...env
  })

type ProxyFault = readonly [
  what: string,
  proxyOf: (servers: Effect.Effect.Success<typeof startProxies>) => string,
  env: User["env"],
  ...Expected
]
const wantsLogin = [
  4,
  "proxy tunnel",
  /the proxy 127\.0\.0\.1 refused the connection \(407\)/,
  /Check the user name and password for the proxy: HTTP_PROXY=/
] as const

test.live.each<ProxyFault>([
  [
    "a proxy that is not there",
    () => "127.0.0.1:9",
    {},
    5,
    "proxy connection",
    /refused the connection/,
    /HTTP_PROXY/
  ],
  ["a proxy that wants a password", ({ proxy }) => proxy, {}, ...wantsLogin],
  [
    "a proxy that does not accept the password",
    ({ proxy }) => `user:wrong@${proxy}`,
    {},
    ...wantsLogin
  ],
  // As in the HTTP client, a user without a password is not sent, and a star within a list has no effect.
  [
    "a proxy URL with a user, but without a password",
    ({ proxy }) => `user@${proxy}`,
    {},
    ...wantsLogin
  ],
  [
    "a proxy that a star in a list of NO_PROXY does not exclude",
    ({ proxy }) => proxy,
    { NO_PROXY: "other.store.example,*" },
    ...wantsLogin
  ],
  [
    "the proxy of http_proxy, which precedes HTTP_PROXY",
    ({ proxy }) => proxy,
    { http_proxy: nobody },
    5,
    "proxy connection",
    /refused/,
    /port in http_proxy/
  ],
  [
    "no proxy for a subdomain of NO_PROXY",
    ({ proxy }) => proxy,
    {
      STORE_API_AUTH_URL: `http://${"x".repeat(64)}.store.example`,
      NO_PROXY: "other.example,store.example"
    },
    5,
    "name lookup",
    /is not known/,
    /the host in STORE_API_AUTH_URL/
  ],
  [
    "a proxy that refuses the tunnel",
    ({ proxy }) => `user:invented@${proxy}`,
    { STORE_API_AUTH_URL: "http://other.store.example" },
    5,
    "proxy tunnel",
    /refuses a tunnel to other\.store\.example:80 \(403\)/,
    /NO_PROXY/
  ],
  [
    "a server that is not a proxy",
    ({ closing }) => closing,
    {},
    5,
    "proxy tunnel",
    /opened no tunnel to /,
    /Check that HTTP_PROXY names a proxy/
  ]
])("check names %s", function*([, proxyOf, env, ...expected]) {
  const servers = yield* startProxies
  const user = yield* throughProxy(servers.user, proxyOf(servers), env)
  yield* expectFailedStep(user, ["--allow-insecure"], expected)
})

test.live("check passes a proxy that works", function*() {
  const { proxy, user } = yield* startProxies
  const behindProxy = yield* throughProxy(user, `user:invented@${proxy}`)
  const { code, steps } = yield* check(behindProxy, ["--allow-insecure"])
  deepStrictEqual([code, ...steps.slice(1, 4).map(({ name }) => name)], [
    0,
    "proxy name lookup",
    "proxy connection",
    "proxy tunnel"
  ])
})

test.live("check reaches this machine without a proxy, whatever the environment says", function*() {
  const env = { HTTP_PROXY: nobody, HTTPS_PROXY: "http://user:can%61ry@127.0.0.1:9" }
  const { code, steps } = yield* check(yield* withProxies((yield* started).user, env))
  deepStrictEqual([code, steps[1]?.name], [0, "name lookup"])
})

type Outcome = readonly [code: number, message: RegExp, remedy?: RegExp]

const unreachable =
  /^Cannot reach the token endpoint \(6 attempts.*\): check STORE_API_AUTH_URL, the network and the proxy/
const webSite =
  /^The .* A web page comes from a web site, a login or a gateway: check STORE_API_AUTH_URL\.$/
const toTarget = /: set STORE_API_AUTH_URL to its target\./
const toBase =
  /^The token endpoint refused .*: check STORE_API_AUTH_URL( and the path of the token endpoint|, and the parameters of the token request if it has any)\.$/
const permissionAdvice = /: check STORE_API_AUTH_URL and what the client is allowed/
const unknownAuthority =
  /^the certificate is from an authority that this machine does not trust/
const sameEnvironment =
  /^Check that STORE_API_URL and STORE_API_AUTH_URL belong to the same environment/
const endpointResponse = (status: number, more = "") =>
  new RegExp(`^the endpoint responded with ${status}${more}$`)
const noToken = (problem: string): Outcome => [
  4,
  endpointResponse(200),
  new RegExp(
    `^The token endpoint returned no usable token \\(${problem}.*\\): check STORE_API_AUTH_URL\\.`
  )
]

type Row = readonly [scenario: Scenario.Name, ...Outcome]

/** The step "token request". */
const tokenRequests: ReadonlyArray<Row> = [
  ["token/specification", 0, /^a token valid for [\d hmins]+$/],
  ["token/429-retry-after-seconds", 0, /^a token valid for .*, after 429$/],
  ["token/fails-then-works", 0, /, after 503 and 500$/],
  ["token/stale-connection", 0, /, after 503 and no response$/],
  [
    "token/expires-in-zero",
    5,
    endpointResponse(200),
    /expired .*: check the system clock and the expires_in/
  ],
  ["token/expires-in-word", ...noToken("expires_in must be a number of seconds")],
  [
    "token/access-token-absent",
    ...noToken("access_token must be 1 to 16384 visible ASCII characters")
  ],
  [
    "token/token-type-other",
    ...noToken("token_type must be a type other than DPoP, MAC and PoP")
  ],
  ["token/body-array", ...noToken("the body must be a JSON object")],
  ["token/body-oauth-error", 4, endpointResponse(200), /: check the client id and secret/],
  ["token/body-html", 4, endpointResponse(200, " and a web page"), webSite],
  ["token/close-before-headers", 5, /^there was no response$/, unreachable],
  ["token/bad-chunks", 5, endpointResponse(200, ", but the response broke off"), unreachable],
  [
    "token/flood-endless",
    4,
    endpointResponse(200),
    /is too large for a token: check STORE_API_AUTH_URL\./
  ],
  [
    "token/redirect-302",
    4,
    endpointResponse(302, ", which leads to http://127\\.0\\.0\\.1:\\d+"),
    toTarget
  ],
  ["token/redirect-loop", 4, endpointResponse(307), toTarget],
  ["token/400-rfc", 4, endpointResponse(400), toBase],
  ["token/403-html", 4, endpointResponse(403, " and a web page"), webSite],
  ["token/401-html", 4, endpointResponse(401, " and a web page"), webSite],
  ["token/401-rfc", 4, endpointResponse(401), /: check the client id and secret/],
  ["token/403-rfc", 4, endpointResponse(403), permissionAdvice],
  ["token/405", 4, endpointResponse(405), /path of the token endpoint\. Retry after 20/],
  ["token/429-always", 5, endpointResponse(429), /: send fewer requests\. Retry after 20/],
  ["token/500-json", 5, endpointResponse(500), /: try again later\. Retry after 20/]
]

/** The step "TLS". */
const handshakes: ReadonlyArray<Row> = [
  ["token/tls-self-signed", 4, unknownAuthority, /set NODE_EXTRA_CA_CERTS/],
  [
    "token/tls-expired",
    4,
    /^the certificate has expired/,
    /^Its owner must renew it, unless the system clock/
  ],
  [
    "token/tls-wrong-host",
    4,
    /^the certificate is not valid for 127\.0\.0\.1/,
    /^Check the host in STORE_API_AUTH/
  ],
  [
    "token/tls-1.1-only",
    5,
    /^the handshake failed/,
    /names a port that speaks TLS 1\.2 or newer\.$/
  ],
  [
    "token/tls-unfinished-handshake",
    5,
    /^the handshake failed \(no response/,
    /names a port that speaks TLS 1\.2/
  ]
]

/** The step "API call". */
const calls: ReadonlyArray<Row> = [
  ["api/401-once", 0, /^the API responded with 200, after 401$/],
  ["api/401-always", 7, /^the API responded with 401$/, sameEnvironment],
  [
    "api/missing-scope",
    7,
    /^the API responded with 401$/,
    /^The token is valid, but not for this\./
  ],
  ["api/403", 7, /^the API responded with 403$/, /^The token is valid, but not for this\./],
  ["api/redirect-307", 7, /^the API responded with 307$/, /^Set STORE_API_URL to the API/],
  [
    "api/pointed-elsewhere",
    2,
    /^it was not sent$/,
    /^The access token may only go to .*; nothing was sent to /
  ],
  ["api/only-literal-bearer", 0, /^the API responded with 200$/]
]

const play = (emulator: Emulator.Service, step: string, [name, code, message, remedy]: Row) =>
  Effect.gen(function*() {
    yield* emulator.fail(Scenario.get(name))
    const path = name === "api/pointed-elsewhere"
      ? `${emulator.elsewhere.url}/orders`
      : "/orders"
    const outcome = yield* check(yield* userOf(emulator), step === "API call" ? [path] : [])
    const cause = outcome.steps.find(({ name }) => name === step)
    assert.match(cause?.message ?? "", message, name)
    assert.match(cause?.remedy ?? "", remedy ?? /^$/, name)
    deepStrictEqual([outcome.code, outcome.failed], [code, code === 0 ? [] : [cause]], name)
    deepStrictEqual(yield* emulator.elsewhere.requests, [], name)
    if (step === "API call") {
      yield* emulator.clearFaults
      yield* emulator.fail(Scenario.get(name))
      deepStrictEqual(
        (yield* run(yield* userOf(emulator), ["call", path, "--fail"])).code,
        code,
        name
      )
    }
    yield* emulator.clearFaults
  })

const httpRows = Object.entries({ "token request": tokenRequests, "API call": calls }).flatMap(
  (
    [step, rows]
  ) => rows.map((row) => [row[0], step, row] as const)
)

describe.concurrent("scenarios", () => {
  test.live.each(httpRows)(
    "check names the cause of the scenario %s in the step %s",
    function*([, step, row]) {
      yield* play((yield* startedWith()).emulator, step, row)
    }
  )
})

const { createSecureContext } = Tls

/** Clients of this process trust the CA of the emulator alone. Node reads NODE_EXTRA_CA_CERTS only when it starts. */
const trustOnly = ({ ca }: Emulator.Service) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      vi.spyOn(Tls, "createSecureContext").mockImplementation((options) =>
        createSecureContext({ ca: Option.getOrThrow(ca), ...options })
      )
    ),
    (spy) => Effect.sync(() => spy.mockRestore())
  )

// One after the other, because the mock is for all clients of this process.
describe.sequential("TLS", () => {
  test.live.each(handshakes.map((row) => [row[0], row] as const))(
    "check names the cause of the scenario %s in the step TLS",
    function*([, row]) {
      const { emulator } = yield* startedWith({ tls: true })
      yield* trustOnly(emulator)
      yield* play(emulator, "TLS", row)
    }
  )

  test.live("check does not trust another authority of the same name", function*() {
    const { user } = yield* startedWith({ tls: true })
    yield* trustOnly((yield* startedWith({ tls: true })).emulator)
    const { failed } = yield* check(user)
    deepStrictEqual(failed.map(({ name }) => name), ["TLS"])
    assert.match(failed[0]?.message ?? "", unknownAuthority)
  })
})
