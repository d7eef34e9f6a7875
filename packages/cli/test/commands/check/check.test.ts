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
  fails,
  onTerminal,
  refuses,
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

describe("store-api check", () => {
  test.live("--json prints one object with each step, also when one fails", function*() {
    const { user } = yield* started
    const json = (who: User) =>
      Effect.map(run(who, ["check", "--json"]), ({ code, stderr, stdout }) => {
        deepStrictEqual([stderr, stdout.split("\n").length], ["", 2])
        return {
          code,
          ...JSON.parse(stdout) as { ok: boolean; steps: Array<Record<string, unknown>> }
        }
      })
    const good = yield* json(user)
    deepStrictEqual([good.code, good.ok, good.steps.length], [0, true, 5])
    deepStrictEqual(Object.keys(good.steps[0] ?? {}), ["step", "ok", "millis", "detail"])
    const wrong = yield* json(withEnv(user, { STORE_API_AUTH_URL: nobody }))
    deepStrictEqual([wrong.code, wrong.ok], [5, false])
    const { millis: _, ...last } = wrong.steps.at(-1) ?? {}
    deepStrictEqual(last, {
      step: "connection",
      ok: false,
      detail: "127.0.0.1:9 refused the connection (ECONNREFUSED)",
      remedy: "Check host and port in STORE_API_AUTH_URL, and whether the service runs there."
    })
  })

  test.live("names the flag that gave a setting, and where the others come from", function*() {
    const { user } = yield* started
    const expected = [
      5,
      "connection",
      /ECONNREFUSED/,
      /Check host and port in --auth-url,/
    ] as const
    const [configuration] = yield* fails(user, ["--auth-url", `${nobody}/`], expected)
    assert.strictEqual(
      configuration?.said,
      "--auth-url from the flags; STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET from the environment; " +
        `POST ${nobody}/v1/oauth/accesstoken`
    )
    const typed = { typed: `${demoSecret}\r`, columns: 300 }
    const { code, screen } = yield* onTerminal(
      without(user, "STORE_API_CLIENT_SECRET"),
      ["check"],
      typed
    )
    assert.strictEqual(code, 0)
    assert.match(
      screen,
      /^Client secret \(not shown\): \r\n.*; client secret from the prompt; POST/
    )
  })

  test.live("asks for a token of its own, which it does not keep", function*() {
    const { emulator, user } = yield* started
    yield* check(user)
    yield* check(user)
    assert.lengthOf(yield* emulator.requests, 2)
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
  })
})

describe("store-api check fails at the configuration, and sends nothing,", () => {
  type Variables = Readonly<Record<string, string>>

  const url = (what: string, url: string, remedy: RegExp) =>
    ["STORE_API_AUTH_URL", "STORE_API_URL"].map((name): readonly [string, Variables, RegExp] =>
      [
        `when ${name} ${what}`,
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
    return [`when ${name} ${what}, also for this machine`, { [name]: proxy }, remedy]
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
  ])("%s, as other commands do", function*([, variables, remedy]) {
    const { emulator, user } = yield* started
    const wrong = yield* withProxies(user, variables)
    // Without a path, the check does not need the API, yet names what is wrong with it.
    for (const args of [[], ["/orders"]]) {
      const steps = yield* fails(wrong, args, [
        3,
        "configuration",
        /missing or cannot be used/,
        remedy
      ])
      assert.lengthOf(steps, 1)
      assert.notInclude(JSON.stringify(steps), "canary")
    }
    yield* refuses(wrong, "call /orders", 3, remedy)
    deepStrictEqual(yield* emulator.requests, [])
  })

  test.live("when something is missing", function*() {
    const { user } = yield* started
    const expected = [
      3,
      "configuration",
      /missing or cannot be used/,
      /STORE_API_CLIENT_ID is not set/
    ] as const
    yield* fails(without(user, "STORE_API_CLIENT_ID"), [], expected)
  })
})

/** A server that accepts connections and sends nothing; `asked` waits until something is sent to it. */
const silent = Effect.gen(function*() {
  const asked = yield* Deferred.make<void>()
  const { port } = yield* listen(Net.createServer((socket) => {
    socket.once("data", () => Deferred.unsafeDone(asked, Effect.void))
  }))
  return { at: `127.0.0.1:${port}`, asked: Deferred.await(asked) }
})

describe("store-api check names the cause", () => {
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
    "%s that accepts and says nothing, after 10 seconds",
    function*([, variable, scheme, expected, others]) {
      yield* TestClock.setTime(Date.now())
      const { asked, at } = yield* silent
      const user = yield* withProxies((yield* started).user, {
        ...others,
        [variable]: `${scheme}://${at}`
      })
      const running = yield* Effect.fork(fails(user, ["/orders"], expected))
      yield* asked
      yield* TestClock.adjust("9999 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(running)
    }
  )

  // No name has more than 63 letters: the resolver rejects it without a query.
  const unknown = `https://${"x".repeat(64)}.example`
  const limited = Fault.status(429, { headers: { "Retry-After": "0" } })
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
      [limited, Fault.status(403)],
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
  ])("%s", function*([, wrong, ...expected]) {
    const { emulator, user } = yield* started
    if (isScript(wrong)) yield* emulator.fail(wrong)
    yield* fails(isScript(wrong) ? user : withEnv(user, wrong), ["/orders"], expected)
  })

  test.live("a redirect, but not to a host that contains the secret", function*() {
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
    yield* fails(withEnv(user, { STORE_API_CLIENT_SECRET: secret }), [], expected)
  })

  test.live("a server without TLS", function*() {
    const { emulator, user } = yield* started
    const wrong = withEnv(user, {
      STORE_API_AUTH_URL: emulator.url.replace("http:", "https:")
    })
    yield* fails(wrong, [], [5, "TLS", /does not speak TLS/, /Check scheme and port/])
  })

  test.live("a server with TLS behind an http URL", function*() {
    const { emulator, user } = yield* started
    const { emulator: { url } } = yield* startedWith({ tls: true })
    const plain = url.replace("https:", "http:")
    const remedy = (name: string) =>
      new RegExp(` If its port speaks TLS, use https:// in ${name}\\.$`)
    const token = [
      5,
      "token request",
      /^there was no response$/,
      remedy("STORE_API_AUTH_URL")
    ] as const
    yield* fails(withEnv(user, { STORE_API_AUTH_URL: plain }), [], token)
    const api = [6, "API call", /no response/, remedy("STORE_API_URL")] as const
    yield* fails(withEnv(user, { STORE_API_URL: plain }), ["/orders"], api)
    assert.lengthOf(yield* emulator.tokens, 1)
  })

  test.live.each(
    [["ahead of", -5, /5 min \d+ s ahead of/], ["behind", 5, /[45] min \d+ s behind/]] as const
  )(
    "a clock that is five minutes %s the server's",
    function*([, minutes, said]) {
      const { user } = yield* startedWith({}, Fault.fields({}, dateOf(minutes)))
      const steps = yield* fails(user, [], [3, "clock", said, /Set the system clock/])
      assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
    }
  )

  test.live("a clock that is an hour off is named beside a refusal", function*() {
    const { user } = yield* startedWith({}, Fault.status(400, dateOf(-60)))
    const { code, failed } = yield* check(user)
    deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
  })
})

describe("the proxy of a check", () => {
  test.live("is not there, wants a password, refuses, or is none at all; one that works is passed", function*() {
    const { emulator, user } = yield* started
    const proxy = Http.createServer().on("connect", (request, socket: Net.Socket) => {
      if (request.headers["proxy-authorization"] === undefined) {
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
    const at = `127.0.0.1:${(yield* listen(proxy)).port}`
    const closing = `127.0.0.1:${
      (yield* listen(Net.createServer((socket) => socket.destroy()))).port
    }`
    // Names of other machines go through the proxy, which leads them all to the emulator.
    const through = (proxy: string, host = "auth.store.example", env = {}) =>
      withProxies(user, {
        STORE_API_AUTH_URL: `http://${host}`,
        HTTP_PROXY: `http://${proxy}`,
        ...env
      })
    const unknown = [
      5,
      "name lookup",
      /is not known/,
      /the host in STORE_API_AUTH_URL/
    ] as const
    const password = [
      4,
      "proxy tunnel",
      /needs a user name and a password \(407\)/,
      /HTTP_PROXY/
    ] as const
    const forbidden = [
      5,
      "proxy tunnel",
      /refuses a tunnel to other\.store\.example:80 \(403\)/,
      /NO_PROXY/
    ] as const
    const faults: ReadonlyArray<readonly [ReturnType<typeof through>, Expected]> = [
      [through("127.0.0.1:9"), [
        5,
        "proxy connection",
        /refused the connection/,
        /HTTP_PROXY/
      ]],
      [through(at), password],
      // As in the HTTP client, a user without a password is not sent, and a star within a list has no effect.
      [through(`user@${at}`), password],
      [through(at, undefined, { NO_PROXY: "other.store.example,*" }), password],
      // The lower-case name takes precedence, and a name includes its subdomains.
      [through(at, undefined, { http_proxy: nobody }), [
        5,
        "proxy connection",
        /refused/,
        /port in http_proxy/
      ]],
      [
        through(at, `${"x".repeat(64)}.store.example`, {
          NO_PROXY: "other.example,store.example"
        }),
        unknown
      ],
      [through(`user:invented@${at}`, "other.store.example"), forbidden],
      [through(closing), [
        5,
        "proxy tunnel",
        /opened no tunnel to /,
        /Check that HTTP_PROXY names a proxy/
      ]]
    ]
    for (const [user, expected] of faults) {
      yield* fails(yield* user, ["--allow-insecure"], expected)
    }
    const good = yield* check(yield* through(`user:invented@${at}`), ["--allow-insecure"])
    deepStrictEqual([good.code, good.failed], [0, []])
    const names = good.steps.map(({ name }) => name)
    deepStrictEqual(names.slice(1, 4), [
      "proxy name lookup",
      "proxy connection",
      "proxy tunnel"
    ])
    // This machine goes through none, whatever the environment says.
    const env = { HTTP_PROXY: nobody, HTTPS_PROXY: "http://user:can%61ry@127.0.0.1:9" }
    const local = yield* check(yield* withProxies(user, env))
    deepStrictEqual([local.code, local.steps[1]?.name], [0, "name lookup"])
  })
})

type Outcome = readonly [code: number, said: RegExp, remedy?: RegExp]

const unreachable =
  /^Cannot reach the token endpoint \(6 attempts.*\): check STORE_API_AUTH_URL, the network and the proxy/
const webSite =
  /^The .* A web page comes from a web site, a login or a gateway: check STORE_API_AUTH_URL\.$/
const toTarget = /: set STORE_API_AUTH_URL to its target\./
const toBase =
  /^The token endpoint refused .*: check STORE_API_AUTH_URL( and the path of the token endpoint|, and the parameters of the token request if it has any)\.$/
const allowed = /: check STORE_API_AUTH_URL and what the client is allowed/
const untrusted = /^the certificate is from an authority that this machine does not trust/
const sameEnvironment =
  /^Check that STORE_API_URL and STORE_API_AUTH_URL belong to the same environment/
const answered = (status: number, more = "") =>
  new RegExp(`^the endpoint responded with ${status}${more}$`)
const noToken = (problem: string): Outcome => [
  4,
  answered(200),
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
    answered(200),
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
  ["token/body-oauth-error", 4, answered(200), /: check the client id and secret/],
  ["token/body-html", 4, answered(200, " and a web page"), webSite],
  ["token/close-before-headers", 5, /^there was no response$/, unreachable],
  ["token/bad-chunks", 5, answered(200, ", but the response broke off"), unreachable],
  [
    "token/flood-endless",
    4,
    answered(200),
    /is too large for a token: check STORE_API_AUTH_URL\./
  ],
  [
    "token/redirect-302",
    4,
    answered(302, ", which leads to http://127\\.0\\.0\\.1:\\d+"),
    toTarget
  ],
  ["token/redirect-loop", 4, answered(307), toTarget],
  ["token/400-rfc", 4, answered(400), toBase],
  ["token/403-html", 4, answered(403, " and a web page"), webSite],
  ["token/401-html", 4, answered(401, " and a web page"), webSite],
  ["token/401-rfc", 4, answered(401), /: check the client id and secret/],
  ["token/403-rfc", 4, answered(403), allowed],
  ["token/405", 4, answered(405), /path of the token endpoint\. Retry after 20/],
  ["token/429-always", 5, answered(429), /: send fewer requests\. Retry after 20/],
  ["token/500-json", 5, answered(500), /: try again later\. Retry after 20/]
]

/** The step "TLS". */
const handshakes: ReadonlyArray<Row> = [
  ["token/tls-self-signed", 4, untrusted, /set NODE_EXTRA_CA_CERTS/],
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

const play = (emulator: Emulator.Service, step: string, [name, code, said, remedy]: Row) =>
  Effect.gen(function*() {
    yield* emulator.fail(Scenario.get(name))
    const path = name === "api/pointed-elsewhere"
      ? `${emulator.elsewhere.url}/orders`
      : "/orders"
    const outcome = yield* check(yield* userOf(emulator), step === "API call" ? [path] : [])
    const cause = outcome.steps.find(({ name }) => name === step)
    assert.match(cause?.said ?? "", said, name)
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

const plain = Object.entries({ "token request": tokenRequests, "API call": calls }).flatMap((
  [step, rows]
) => rows.map((row) => [row[0], step, row] as const))

describe.concurrent("store-api check names the cause of", () => {
  test.live.each(plain)("%s, in the step %s", function*([, step, row]) {
    yield* play((yield* startedWith()).emulator, step, row)
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

test.live("store-api check names the cause of each fault of TLS, and of another authority of the same name", function*() {
  const { emulator, user } = yield* startedWith({ tls: true })
  yield* trusting(emulator)
  for (const row of handshakes) yield* play(emulator, "TLS", row)
  yield* trusting((yield* startedWith({ tls: true })).emulator)
  const { failed } = yield* check(user)
  deepStrictEqual(failed.map(({ name }) => name), ["TLS"])
  assert.match(failed[0]?.said ?? "", untrusted)
})
