import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Duration, Effect, FastCheck as fc, Redacted, TestClock } from "effect"
import {
  askToken,
  bodyOf,
  demoBody,
  demoSecret,
  formType,
  getToken,
  type HttpRequest,
  json,
  tokenPath
} from "./utils.js"

const specialSecret = "a b+c/d=e%f~g%20h%zz="
const specialBody = bodyOf("two words=id", specialSecret)
const specialCharacters: Emulator.Options = {
  clients: [
    Emulator.demoClient,
    { clientId: "plain-id", clientSecret: Redacted.make("plain-secret") },
    { clientId: "two words=id", clientSecret: Redacted.make(specialSecret) }
  ]
}

const form = { "Content-Type": formType }
const grant = "grant_type=client_credentials"

const inForm = (client_id: string, client_secret: string) =>
  new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret })
    .toString()

const credentialsIn = (authorization: string) => ({
  headers: { ...form, Authorization: authorization },
  body: grant
})

const printable = String.fromCharCode(
  ...Array.from({ length: 95 }, (_, index) => 0x20 + index)
)
const base64 = (text: string) => Buffer.from(text).toString("base64")
/** The encodings of real clients: as in a form, by percent, or only what a form decoder would change. */
const encoders = [
  (value: string) => new URLSearchParams({ "": value }).toString().slice(1),
  encodeURIComponent,
  (value: string) => value.replace(/[%+]|[^ -~]/gu, encodeURIComponent)
]
const inHeader = (
  id: string,
  secret: string,
  encode: (value: string) => string = encodeURIComponent
) => credentialsIn(`Basic ${base64(`${encode(id).replaceAll(":", "%3A")}:${encode(secret)}`)}`)

/** The whole description for a wrong secret and for an unknown client, which thus cannot be distinguished. */
const wrongClient = "The client_id is unknown or the client_secret is wrong."

const lenient = { lenient: true }
const reordered =
  `client_secret=${demoSecret}&grant_type=client_credentials&client_id=demo-client`
const post: Emulator.Options = { clientAuthentication: "client_secret_post" }
const odd = { clientId: "odd", clientSecret: Redacted.make("no%value") }
const basic: Emulator.Options = { clientAuthentication: "client_secret_basic" }
const postOrBasic: Emulator.Options = {
  clientAuthentication: ["client_secret_post", "client_secret_basic"]
}
const demoPost = inForm("demo-client", demoSecret)
const demoBasic = inHeader("demo-client", demoSecret)
const chunked = { ...form, "Transfer-Encoding": "chunked" }
const twice = (...header: ReadonlyArray<string>) => [...header, ...header]
const twoHeaders = {
  headers: [
    "Host",
    "localhost",
    "Content-Type",
    formType,
    ...twice("Authorization", demoBasic.headers.Authorization)
  ],
  body: grant
}
const ofType = (type: string): HttpRequest => ({ headers: { "Content-Type": type } })
const authorized = (scheme: string): HttpRequest => ({
  headers: { ...form, Authorization: `${scheme} aW52ZW50ZWQ6aW52ZW50ZWQ=` }
})

/** By status and error: the changes to a request, and what the description of the error includes. */
const refusals: Readonly<
  Record<
    string,
    Record<
      string,
      readonly [HttpRequest, says?: string | undefined, options?: Emulator.Options]
    >
  >
> = {
  "405 invalid_request": Object.fromEntries(
    ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((
      method
    ) => [`with the method ${method}`, [{ method }]])
  ),
  "415 invalid_request": {
    "whose Content-Type has a charset": [ofType(`${formType}; charset=utf-8`)],
    "whose Content-Type is in capitals": [ofType("Application/X-WWW-Form-Urlencoded")],
    "whose Content-Type is JSON": [ofType("application/json")],
    "whose Content-Type is sent twice": [{
      headers: ["Host", "localhost", ...twice("Content-Type", formType)]
    }],
    "without a Content-Type": [{ headers: {} }],
    "of another media type, to a lenient endpoint": [
      ofType(`${formType}s`),
      undefined,
      lenient
    ]
  },
  "400 invalid_request": {
    "with an empty query": [{ path: `${tokenPath}?` }],
    "with the grant in the query": [{ path: `${tokenPath}?grant_type=client_credentials` }],
    "with an empty body": [{ body: "" }],
    "with reordered fields": [{ body: reordered }],
    "without a grant": [{ body: `client_id=demo-client&client_secret=${demoSecret}` }],
    "with an empty secret": [{ body: bodyOf("demo-client", "") }],
    "with an additional field": [{ body: `${demoBody}&canary=canary` }],
    "with an ampersand at its end": [{ body: `${demoBody}&` }],
    "with credentials of the scheme Basic": [authorized("Basic"), "body"],
    "with credentials of the scheme basic": [authorized("basic"), "body"],
    "with credentials in the header only": [demoBasic, "once: in the body."],
    "with an additional field, to a lenient endpoint": [
      { body: `scope=&${reordered}` },
      undefined,
      lenient
    ],
    "with a repeated field, to a lenient endpoint": [
      { body: `${reordered}&client_id=demo` },
      undefined,
      lenient
    ],
    "with credentials in header and form": [
      { ...demoBasic, body: demoPost },
      "once",
      postOrBasic
    ],
    "with a header and a client id in the form": [
      { ...demoBasic, body: `${grant}&client_id=demo` },
      "once",
      basic
    ],
    "with two headers": [twoHeaders, "once", basic],
    "with a repeated field, to an endpoint of client_secret_post": [
      { body: `${demoPost}&${grant}` },
      "repeated",
      post
    ],
    "with a question mark at its start, to an endpoint of client_secret_post": [
      { body: `?${demoPost}` },
      "grant_type",
      post
    ],
    "without a grant, to an endpoint of client_secret_basic": [
      { ...demoBasic, body: "" },
      "grant_type",
      basic
    ]
  },
  "400 unsupported_grant_type": {
    "with another grant": [{ body: demoBody.replace("client_credentials", "canary") }],
    "with another grant, to an endpoint of client_secret_post": [
      { body: "grant_type=password" },
      undefined,
      post
    ]
  },
  "401 invalid_client": {
    "with a wrong secret": [{ body: bodyOf("demo-client", "canary") }, wrongClient],
    "of an unknown client": [{ body: bodyOf("canary", demoSecret) }, wrongClient],
    "with the secret of another client": [{ body: bodyOf("plain-id", demoSecret) }],
    "with a byte after the secret": [{ body: `${demoBody}\n` }],
    "with a body of exactly 64 KiB": [{ body: demoBody.padEnd(64 * 1024, "x") }],
    "with a wrong secret, to a lenient endpoint": [
      { body: bodyOf("demo-client", "wrong") },
      undefined,
      lenient
    ],
    "with a percent-encoded secret": [{
      body: bodyOf("demo-client", encodeURIComponent(demoSecret))
    }, "raw"],
    "that is form-encoded": [{ body: inForm("demo-client", demoSecret) }, "raw"],
    "that is form-encoded with spaces as plus": [{
      body: inForm("two words=id", specialSecret)
    }, "raw"],
    "with a percent-encoded grant": [{
      body: demoBody.replace("client_credentials", "client%5Fcredentials")
    }, "raw"],
    "that is not encoded, to an endpoint of client_secret_post": [
      {},
      "encoded as client_secret_post requires",
      post
    ],
    "whose secret has a percent sign without two digits, to an endpoint of client_secret_post":
      [
        { body: `${grant}&client_id=odd&client_secret=no%value` },
        "encoded as client_secret_post requires",
        { ...post, clients: [Emulator.demoClient, odd] }
      ],
    "whose header has a percent sign without two digits": [
      inHeader("odd", "no%value", String),
      "encoded as client_secret_basic requires",
      { ...basic, clients: [Emulator.demoClient, odd] }
    ],
    "whose header is not encoded": [
      inHeader("demo-client", demoSecret, String),
      "encoded as client_secret_basic",
      basic
    ],
    "whose header has no padding": [
      credentialsIn(demoBasic.headers.Authorization.replace(/=+$/, "")),
      "",
      basic
    ],
    "with a wrong secret in the header": [inHeader("demo-client", "wrong"), "unknown", basic],
    "without a secret, to an endpoint of client_secret_post": [
      { body: `${grant}&client_id=demo-client` },
      "",
      post
    ],
    "without credentials": [
      { body: grant },
      "with client_secret_post or client_secret_basic.",
      postOrBasic
    ],
    "with the form, to an endpoint of client_secret_basic": [
      { body: demoPost },
      "with client_secret_basic.",
      basic
    ],
    "with the header, to an endpoint of client_secret_post": [
      demoBasic,
      "with client_secret_post.",
      post
    ]
  },
  "413 invalid_request": {
    "with a body of more than 64 KiB": [{ body: demoBody.padEnd(65 * 1024, "x") }],
    "with a chunked body of more than 64 KiB": [{
      headers: chunked,
      body: demoBody.padEnd(300 * 1024, "x")
    }]
  }
}

/** Changes to a request that still succeeds. */
const accepted: Readonly<Record<string, readonly [HttpRequest, Emulator.Options?]>> = {
  "that is chunked": [{ headers: chunked }],
  "that offers another protocol, which is ignored": [{
    headers: { ...form, Connection: "Upgrade", Upgrade: "h2c" }
  }],
  "whose secret holds + / = % ~ and spaces without encoding": [
    { body: specialBody },
    specialCharacters
  ],
  "with fields in another order, to a lenient endpoint": [{ body: reordered }, lenient],
  "with a charset, to a lenient endpoint": [ofType(`${formType}; charset=utf-8`), lenient],
  "with a media type in capitals, to a lenient endpoint": [
    ofType(`${formType.toUpperCase()};CHARSET=UTF-8`),
    lenient
  ],
  "with an encoded form in any order and with other fields, to an endpoint of client_secret_post":
    [
      {
        body: `audience=a&audience=b&client_secret=${
          encodeURIComponent(demoSecret)
        }&client_id=demo%2Dclient&${grant}`
      },
      post
    ],
  "with a header of the scheme basic": [
    credentialsIn(demoBasic.headers.Authorization.replace("B", "b")),
    basic
  ],
  "with the form, to an endpoint of both methods": [{ body: demoPost }, postOrBasic],
  "with the header, to an endpoint of both methods": [demoBasic, postOrBasic]
}

test.live.each(Object.entries(accepted))(
  "a token request succeeds %s",
  function*([, [changes, options]]) {
    assert.strictEqual(
      (yield* askToken((yield* Emulator.make(options)).url, changes)).status,
      200
    )
  }
)

const rows = Object.entries(refusals).flatMap(([answer, requests]) =>
  Object.entries(requests).map(([name, row]) => [answer, name, ...row] as const)
)

test.live.each(rows)(
  "the response is %s to a token request %s",
  function*([answer, , changes, says = "", options = specialCharacters]) {
    const { tokens, url } = yield* Emulator.make(options)
    const { headers, status, text } = yield* askToken(url, changes)
    const { error, error_description, ...others } = JSON.parse(text) as Readonly<
      Record<string, string>
    >
    assert.strictEqual(`${status} ${error}`, answer)
    deepStrictEqual(others, {})
    deepStrictEqual([headers["content-type"], headers["cache-control"]], [
      "application/json",
      "no-store"
    ])
    if (says === wrongClient) assert.strictEqual(error_description, says)
    else assert.include(error_description, says)
    if (status === 405) assert.strictEqual(headers.allow, "POST")
    assert.notInclude(text, demoSecret)
    assert.notInclude(text + JSON.stringify(headers), "canary", "no part of the body")
    assert.lengthOf(yield* tokens, 0)
    const isBasic = [options.clientAuthentication].flat().includes("client_secret_basic")
    const challenged = status === 401 && (isBasic || changes === demoBasic)
    assert.strictEqual(
      headers["www-authenticate"],
      challenged ? "Basic realm=\"store-api\"" : undefined
    )
    const isPost = options.clientAuthentication === "client_secret_post"
    const otherwise = isPost ? { body: demoPost } : {}
    const correct = isBasic ? demoBasic : otherwise
    assert.strictEqual(
      (yield* askToken(url, correct)).status,
      200,
      "a correct request then succeeds"
    )
  }
)

test.live("a token request is from the client whose id and secret it has in its form or header, whatever these contain", function*() {
  const character = fc.oneof(
    fc.constantFrom(...printable),
    fc.constantFrom(..."äöüß€:%+ &=", "%2B", "%zz")
  )
  const text = fc.array(character, { minLength: 1 }).map((parts) => parts.join(""))
  const pairs: ReadonlyArray<readonly [string, string]> = [
    [printable, `ä${printable}`],
    ...fc.sample(fc.tuple(text, text), 50)
  ]
  const clients = pairs.map(([clientId, secret]) => ({
    clientId,
    clientSecret: Redacted.make(secret)
  }))
  const { url } = yield* Emulator.make({ ...postOrBasic, clients })
  for (const pair of pairs) {
    for (
      const changes of [
        { body: inForm(...pair) },
        ...encoders.map((encode) => inHeader(...pair, encode))
      ]
    ) {
      const { client_id } = json(yield* askToken(url, changes))
      assert.strictEqual(client_id, pair[0], JSON.stringify([pair, changes]))
    }
  }
})

test.live("a repeated token is the last one of the requested scope", function*() {
  const { tokens, url } = yield* Emulator.make({ ...postOrBasic, repeatToken: true })
  const ask = (scope: string) =>
    Effect.map(askToken(url, { ...demoBasic, body: `${grant}&scope=${scope}` }), json)
  const [orders, prices, again] = yield* Effect.forEach([
    "orders+%C3%BC",
    "prices",
    "orders+%C3%BC"
  ], ask)
  deepStrictEqual([orders?.["scope"], prices?.["scope"], again?.["scope"]], [
    "orders ü",
    "prices",
    "orders ü"
  ])
  assert.strictEqual(again?.["access_token"], orders?.["access_token"])
  deepStrictEqual((yield* tokens).map(({ scope }) => scope), ["orders ü", "prices"])
})

test.live("a token request succeeds only at the given path below the base path", function*() {
  const { requests, url } = yield* Emulator.make({
    basePath: "/store/v2/",
    tokenPath: "/oauth/token/"
  })
  assert.match(url, /\/store\/v2$/)
  assert.strictEqual((yield* askToken(url, { path: "/oauth/token/" })).status, 200)
  const { status, text } = yield* askToken(url)
  assert.strictEqual(status, 404)
  assert.include(text, "exactly /store/v2/oauth/token/.")
  assert.strictEqual((yield* askToken(new URL(url).origin)).status, 404)
  deepStrictEqual((yield* requests).map(({ kind }) => kind), ["token", "api", "other"])
})

test.live("a token response has the eight fields, which name the client", function*() {
  const { url } = yield* Emulator.make(specialCharacters)
  const before = Date.now()
  const response = yield* askToken(url)
  const { access_token, issued_at, ...others } = json(response)
  deepStrictEqual(
    [response.status, response.headers["content-type"], response.headers["cache-control"]],
    [200, "application/json", "no-store"]
  )
  deepStrictEqual<unknown>(others, {
    token_type: "bearer",
    expires_in: 3600,
    scope: "",
    application_name: "Demo application",
    "developer.email": "demo@example.invalid",
    client_id: "demo-client"
  })
  assert.match(String(access_token), /^[A-Za-z0-9._~+/-]+=*$/)
  assert(typeof issued_at === "string")
  assert.match(issued_at, /^\d+$/)
  assert.isAtLeast(Number(issued_at), before)
  const other = json(yield* askToken(url, { body: specialBody }))
  deepStrictEqual([other["client_id"], other["application_name"]], [
    "two words=id",
    "two words=id"
  ])
  assert.strictEqual(other["developer.email"], "developer@example.invalid")
})

test.live("a token request succeeds with either secret of two clients with the same id", function*() {
  const secrets = ["old-secret", "new-secret"]
  const clients = secrets.map((secret) => ({
    clientId: "rotating",
    clientSecret: Redacted.make(secret)
  }))
  const { url } = yield* Emulator.make({ clients })
  for (
    const [secret, status] of [["old-secret", 200], ["new-secret", 200], [
      "other",
      401
    ]] as const
  ) {
    assert.strictEqual(
      (yield* askToken(url, { body: bodyOf("rotating", secret) })).status,
      status
    )
  }
})

/** A wrong path gets 404 and the correct path, unless the request looks like one of the API. */
test.live.each<[name: string, status: 404 | 401, path: string, changes?: HttpRequest]>([
  ["with a trailing slash", 404, `${tokenPath}/`],
  ["in capitals", 404, "/V1/oauth/accesstoken"],
  ["with an escape", 404, "/v1/oauth/access%74oken"],
  ["with two slashes", 404, "//v1/oauth/accesstoken"],
  ["of another name", 404, "/oauth2/token"],
  ["with Basic authentication", 404, "/v1/oauth/token", authorized("Basic")],
  ["with JSON", 404, "/v1/oauth/token", { ...ofType("application/json"), body: "{}" }],
  ["with another form", 401, "/orders", { body: "note=grant_type=none" }],
  ["with another media type", 401, "/orders", ofType("application/json")],
  ["with another method", 401, `${tokenPath}/`, { method: "PUT", body: "" }]
])("to a path %s gets %i", function*([, status, path, changes]) {
  const { requests, url } = yield* Emulator.make({ basePath: "/store" })
  const response = yield* askToken(url, { path, ...changes })
  assert.strictEqual(response.status, status)
  assert.strictEqual("www-authenticate" in response.headers, status === 401)
  if (status === 404) assert.include(response.text, `/store${tokenPath}`)
  deepStrictEqual((yield* requests).map(({ kind }) => kind), ["api"])
})

test.live("a request to the token path of another base is an API request if it carries a token", function*() {
  const { url } = yield* Emulator.make()
  const headers = { ...form, Authorization: `Bearer ${yield* getToken(url)}` }
  assert.strictEqual(
    (yield* askToken(url, { path: "/v1/oauth/clients", headers })).status,
    200
  )
})

test.live.each([["2 seconds", 2], ["2999 millis", 2], ["500 millis", 0]] as const)(
  "expires_in is the whole seconds of a tokenLife of %s",
  function*([tokenLife, expiresIn]) {
    const { tokens, url } = yield* Emulator.make({ tokenLife })
    assert.strictEqual(json(yield* askToken(url))["expires_in"], expiresIn)
    const [{ expiresAt, issuedAt } = assert.fail("no token")] = yield* tokens
    const lifetime = expiresAt.epochMillis - issuedAt.epochMillis
    assert.strictEqual(lifetime, Duration.toMillis(tokenLife))
  }
)

test("the lifetime of a token is measured by the emulator's clock", function*() {
  yield* TestClock.setTime(1_700_000_000_123)
  const { tokens, url } = yield* Emulator.make()
  const body = json(yield* Effect.orDie(askToken(url)))
  assert.strictEqual(body["issued_at"], "1700000000123")
  const [token] = yield* tokens
  assert.strictEqual(token?.expiresAt.epochMillis, 1_700_003_600_123)
})

test("a repeated token keeps its expiry", function*() {
  const { url } = yield* Emulator.make({ repeatToken: true })
  const first = json(yield* askToken(url))
  yield* TestClock.adjust("10500 millis")
  deepStrictEqual([first["expires_in"], json(yield* askToken(url))], [
    3600,
    { ...first, expires_in: 3589 }
  ])
})

test("a token that has expired is not repeated", function*() {
  const { url } = yield* Emulator.make({ repeatToken: true })
  const first = yield* getToken(url)
  yield* TestClock.adjust("60 minutes")
  const { access_token, expires_in } = json(yield* askToken(url))
  assert.notStrictEqual(access_token, first)
  assert.strictEqual(expires_in, 3600)
})

/** An emulator that repeats the last of two tokens of an earlier one. */
const startRepeating = Effect.gen(function*() {
  const { tokens, url } = yield* Emulator.make()
  const [first, last] = yield* Effect.all([getToken(url), getToken(url)])
  const options = { ...specialCharacters, repeatToken: true, tokens: yield* tokens }
  return { ...yield* Emulator.make(options), first, last }
})

test.live("the last token of an earlier emulator is repeated", function*() {
  const { last, url } = yield* startRepeating
  assert.strictEqual(yield* getToken(url), last)
})

test.live("a token is repeated only to its client", function*() {
  const { last, url } = yield* startRepeating
  assert.notStrictEqual(yield* getToken(url, { body: specialBody }), last)
})

test.live("a token that was revoked is not repeated", function*() {
  const { first, last, revoke, url } = yield* startRepeating
  assert.strictEqual(yield* revoke(last), 1)
  assert.notInclude([first, last], yield* getToken(url))
})
