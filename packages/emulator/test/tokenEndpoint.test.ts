import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Duration, Effect, Redacted, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, demoBody, demoSecret, formType, getToken, type HttpRequest, json, tokenPath } from "./utils.js"

const specialCharacters: Emulator.Options = {
  clients: [
    Emulator.demoClient,
    { clientId: "plain-id", clientSecret: Redacted.make("plain-secret") },
    { clientId: "two words=id", clientSecret: Redacted.make("a b+c/d=e%f~g%20h%zz=") }
  ]
}
const bodyOf = (id: string, secret: string) => `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`
const specialBody = bodyOf("two words=id", "a b+c/d=e%f~g%20h%zz=")

const inForm = (client_id: string, client_secret: string) =>
  new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret }).toString()

/** The whole description for a wrong secret and for an unknown client, which thus cannot be distinguished. */
const wrongClient = "The client_id is unknown or the client_secret is wrong."

/** Sends a request to a new emulator, checks that it is refused, and checks that a correct request then succeeds. */
const refused = (changes: HttpRequest, status: number, error: string, options: Emulator.Options = {}) =>
  Effect.gen(function*() {
    const { tokens, url } = yield* Emulator.make(options)
    const response = yield* askToken(url, changes)
    const body = json(response)
    assert.strictEqual(response.status, status)
    assert.strictEqual(body["error"], error)
    assert.isString(body["error_description"])
    deepStrictEqual(Object.keys(body), ["error", "error_description"])
    assert.strictEqual(response.headers["content-type"], "application/json")
    assert.strictEqual(response.headers["cache-control"], "no-store")
    assert.notInclude(response.text, demoSecret)
    assert.lengthOf(yield* tokens, 0)
    assert.strictEqual((yield* askToken(url)).status, 200)
    return { ...response, description: String(body["error_description"]) }
  })

describe("a token request as specified", () => {
  test.live("gets a response with the eight fields", function*() {
    const { url } = yield* Emulator.make()
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
  })

  test.live("also succeeds with fetch", function*() {
    const { url } = yield* Emulator.make()
    const response = yield* Effect.promise(() =>
      fetch(`${url}${tokenPath}`, { method: "POST", headers: { "content-type": formType }, body: demoBody })
    )
    assert.strictEqual(response.status, 200)
    yield* Effect.promise(() => response.text())
  })

  test.live("holds + / = % ~ and spaces without encoding", function*() {
    const { url } = yield* Emulator.make(specialCharacters)
    const response = yield* askToken(url, { body: specialBody })
    assert.strictEqual(response.status, 200)
    assert.strictEqual(json(response)["client_id"], "two words=id")
    assert.strictEqual(json(response)["application_name"], "two words=id")
    assert.strictEqual(json(response)["developer.email"], "developer@example.invalid")
  })

  const allowed: Record<string, HttpRequest> = {
    "can be chunked": { headers: { "Content-Type": formType, "Transfer-Encoding": "chunked" } },
    "can offer another protocol, which is ignored": {
      headers: { "Content-Type": formType, Connection: "Upgrade", Upgrade: "h2c" }
    }
  }
  for (const [name, changes] of Object.entries(allowed)) {
    test.live(name, function*() {
      assert.strictEqual((yield* askToken((yield* Emulator.make()).url, changes)).status, 200)
    })
  }

  test.live("gets a new token each time", function*() {
    const { tokens, url } = yield* Emulator.make()
    const first = yield* getToken(url)
    const second = yield* getToken(url)
    assert.notStrictEqual(first, second)
    deepStrictEqual((yield* tokens).map(({ value }) => Redacted.value(value)), [first, second])
  })

  test.live("succeeds only below the base path", function*() {
    const { requests, url } = yield* Emulator.make({ basePath: "/store/v2/" })
    assert.match(url, /\/store\/v2$/)
    assert.strictEqual((yield* askToken(url)).status, 200)
    assert.strictEqual((yield* askToken(new URL(url).origin)).status, 404)
    deepStrictEqual((yield* requests).map(({ kind }) => kind), ["token", "other"])
  })

  test.live("succeeds with either secret of two clients with the same id", function*() {
    const { url } = yield* Emulator.make({
      clients: ["old-secret", "new-secret"].map((secret) => ({
        clientId: "rotating",
        clientSecret: Redacted.make(secret)
      }))
    })
    assert.strictEqual((yield* askToken(url, { body: bodyOf("rotating", "old-secret") })).status, 200)
    assert.strictEqual((yield* askToken(url, { body: bodyOf("rotating", "new-secret") })).status, 200)
    assert.strictEqual((yield* askToken(url, { body: bodyOf("rotating", "other") })).status, 401)
  })
})

const form = { "Content-Type": formType }
const lenient = { lenient: true }
const reordered = `client_secret=${demoSecret}&grant_type=client_credentials&client_id=demo-client`
const ofType = (type: string): HttpRequest => ({ headers: { "Content-Type": type } })
const authorized = (scheme: string): HttpRequest => ({
  headers: { ...form, Authorization: `${scheme} aW52ZW50ZWQ6aW52ZW50ZWQ=` }
})

/** By status and error: the changes to a request, and what the description of the error includes. */
const refusals: Readonly<
  Record<string, Record<string, readonly [HttpRequest, says?: string | undefined, options?: Emulator.Options]>>
> = {
  "405 invalid_request": Object.fromEntries(
    ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => [`with the method ${method}`, [{ method }]])
  ),
  "415 invalid_request": {
    "whose Content-Type has a charset": [ofType(`${formType}; charset=utf-8`)],
    "whose Content-Type has a charset without a space": [ofType(`${formType};charset=UTF-8`)],
    "whose Content-Type is in capitals": [ofType("Application/X-WWW-Form-Urlencoded")],
    "whose Content-Type is JSON": [ofType("application/json")],
    "whose Content-Type is sent twice": [{
      headers: ["Host", "localhost", "Content-Type", formType, "Content-Type", formType]
    }],
    "without a Content-Type": [{ headers: {} }],
    "of another media type, to a lenient endpoint": [ofType(`${formType}s`), undefined, lenient]
  },
  "400 invalid_request": {
    "with an empty query": [{ path: `${tokenPath}?` }],
    "with a query": [{ path: `${tokenPath}?a=b` }],
    "with the grant in the query": [{ path: `${tokenPath}?grant_type=client_credentials` }],
    "with an empty body": [{ body: "" }],
    "with reordered fields": [{
      body: `client_id=demo-client&client_secret=${demoSecret}&grant_type=client_credentials`
    }],
    "without a secret": [{ body: "grant_type=client_credentials&client_id=demo-client" }],
    "without a grant": [{ body: `client_id=demo-client&client_secret=${demoSecret}` }],
    "with an empty secret": [{ body: bodyOf("demo-client", "") }],
    "with an additional field": [{ body: `${demoBody}&scope=` }],
    "with a repeated field": [{ body: `grant_type=client_credentials&${demoBody}` }],
    "with JSON in the body": [{ body: JSON.stringify({ grant_type: "client_credentials" }) }],
    "with bytes that are not text": [{ body: Uint8Array.of(0xff, 0xfe, 0x00) }],
    "with credentials of the scheme Basic": [authorized("Basic"), "body"],
    "with credentials of the scheme basic": [authorized("basic"), "body"],
    "with an additional field, to a lenient endpoint": [{ body: `scope=&${reordered}` }, undefined, lenient],
    "with a repeated field, to a lenient endpoint": [{ body: `${reordered}&client_id=demo-client` }, undefined, lenient]
  },
  "400 unsupported_grant_type": {
    "with another grant": [{ body: demoBody.replace("client_credentials", "password") }],
    "of the password flow": [{ body: "grant_type=password&username=invented&password=invented" }]
  },
  "401 invalid_client": {
    "with a wrong secret": [{ body: bodyOf("demo-client", "wrong") }, wrongClient],
    "of an unknown client": [{ body: bodyOf("unknown", demoSecret) }, wrongClient],
    "with a wrong secret that holds an escape": [{ body: bodyOf("demo-client", "wrong%2B") }, wrongClient],
    "with the secret of another client": [{ body: bodyOf("plain-id", demoSecret) }],
    "with a byte after the secret": [{ body: `${demoBody}\n` }],
    "with a body of exactly 64 KiB": [{ body: demoBody.padEnd(64 * 1024, "x") }],
    "with a wrong secret, to a lenient endpoint": [
      { body: "client_secret=wrong&grant_type=client_credentials&client_id=demo-client" },
      undefined,
      lenient
    ],
    "with a percent-encoded secret": [{ body: bodyOf("demo-client", encodeURIComponent(demoSecret)) }, "raw"],
    "that is form-encoded": [{ body: inForm("demo-client", demoSecret) }, "raw"],
    "that is form-encoded with spaces as plus": [{ body: inForm("two words=id", "a b+c/d=e%f~g%20h%zz=") }, "raw"],
    "with a percent-encoded grant": [{ body: demoBody.replace("client_credentials", "client%5Fcredentials") }, "raw"],
    "that is encoded as a whole": [{ body: encodeURIComponent(demoBody) }, "raw"],
    "with a needless escape": [{ body: bodyOf("plain%2Did", "plain-secret") }, "raw"]
  },
  "413 invalid_request": {
    "with a body of more than 64 KiB": [{ body: demoBody.padEnd(65 * 1024, "x") }],
    "with a chunked body of more than 64 KiB": [{
      headers: { ...form, "Transfer-Encoding": "chunked" },
      body: demoBody.padEnd(300 * 1024, "x")
    }]
  }
}

for (const [answer, requests] of Object.entries(refusals)) {
  const [status = "", error = ""] = answer.split(" ")
  describe(`a token request gets ${answer}`, () => {
    for (const [name, [changes, says = "", options = specialCharacters]] of Object.entries(requests)) {
      test.live(name, function*() {
        const { description, headers } = yield* refused(changes, Number(status), error, options)
        if (says === wrongClient) assert.strictEqual(description, says)
        else assert.include(description, says)
        if (status === "405") assert.strictEqual(headers.allow, "POST")
      })
    }
  })
}

describe("a token request", () => {
  test.live("gets a response that repeats no part of the body", function*() {
    const { url } = yield* Emulator.make()
    const canary = "canary-of-a-secret"
    for (
      const body of [
        bodyOf("demo-client", canary),
        bodyOf(canary, "x"),
        canary,
        `${canary}=1`,
        `grant_type=${canary}`,
        `${demoBody}&${canary}=${canary}`
      ]
    ) {
      const response = yield* askToken(url, { body })
      assert.isAtLeast(response.status, 400)
      assert.notInclude(response.text, canary)
      assert.notInclude(JSON.stringify(response.headers), canary)
    }
  })
})

describe("the lifetime of a token", () => {
  test.live("can be shorter than an hour, and expires_in is its whole seconds", function*() {
    for (const [tokenLife, expiresIn] of [["2 seconds", 2], ["2999 millis", 2], ["500 millis", 0]] as const) {
      const { tokens, url } = yield* Emulator.make({ tokenLife })
      assert.strictEqual(json(yield* askToken(url))["expires_in"], expiresIn)
      const [token] = yield* tokens
      assert.isDefined(token)
      assert.strictEqual(
        token.expiresAt.epochMillis - token.issuedAt.epochMillis,
        Duration.toMillis(Duration.decode(tokenLife))
      )
    }
  })

  test("is measured by the emulator's clock", function*() {
    yield* TestClock.setTime(1_700_000_000_123)
    const { tokens, url } = yield* Emulator.make()
    const body = json(yield* Effect.orDie(askToken(url)))
    assert.strictEqual(body["issued_at"], "1700000000123")
    const [token] = yield* tokens
    assert.strictEqual(token?.expiresAt.epochMillis, 1_700_003_600_123)
  })

  test("continues while the token is repeated; after its end there is a new token", function*() {
    const { tokens, url } = yield* Emulator.make({ repeatToken: true })
    const first = json(yield* askToken(url))
    yield* TestClock.adjust("10500 millis")
    const second = json(yield* askToken(url))
    assert.strictEqual(second["access_token"], first["access_token"])
    assert.strictEqual(second["issued_at"], first["issued_at"])
    assert.strictEqual(first["expires_in"], 3600)
    assert.strictEqual(second["expires_in"], 3589)
    yield* TestClock.adjust("3589500 millis")
    const third = json(yield* askToken(url))
    assert.notStrictEqual(third["access_token"], first["access_token"])
    assert.strictEqual(third["expires_in"], 3600)
    assert.lengthOf(yield* tokens, 2)
  })

  test.live("ends when a repeated token is revoked; each client has its own token", function*() {
    const { revoke, url } = yield* Emulator.make({ ...specialCharacters, repeatToken: true })
    const first = yield* getToken(url)
    assert.strictEqual(yield* getToken(url), first)
    assert.notStrictEqual(yield* getToken(url, { body: specialBody }), first)
    assert.strictEqual(yield* revoke(first), 1)
    assert.notStrictEqual(yield* getToken(url), first)
  })
})

describe("a token request to a wrong path", () => {
  const misspelt: Record<string, HttpRequest> = {
    "a trailing slash": { path: `${tokenPath}/` },
    "capitals": { path: "/V1/oauth/accesstoken" },
    "an escape": { path: "/v1/oauth/access%74oken" },
    "two slashes": { path: "//v1/oauth/accesstoken" },
    "another name": { path: "/oauth2/token" },
    "Basic authentication": {
      path: "/v1/oauth/token",
      headers: { ...form, Authorization: "Basic aW52ZW50ZWQ6aW52ZW50ZWQ=" }
    },
    "JSON": { path: "/v1/oauth/token", headers: { "Content-Type": "application/json" }, body: "{}" }
  }
  for (const [name, changes] of Object.entries(misspelt)) {
    test.live(`gets 404 and the correct path: ${name}`, function*() {
      const { requests, url } = yield* Emulator.make({ basePath: "/store" })
      const response = yield* askToken(url, changes)
      assert.strictEqual(response.status, 404)
      assert.notProperty(response.headers, "www-authenticate")
      assert.include(response.text, `/store${tokenPath}`)
      deepStrictEqual((yield* requests).map(({ kind }) => kind), ["api"])
    })
  }

  const ofTheApi: Record<string, HttpRequest> = {
    "another form": { path: "/orders", body: "note=grant_type=none" },
    "another media type": { path: "/orders", headers: { "Content-Type": "application/json" } },
    "another method": { path: `${tokenPath}/`, method: "PUT", body: "" }
  }
  for (const [name, changes] of Object.entries(ofTheApi)) {
    test.live(`gets the 401 of the API for ${name}`, function*() {
      const { url } = yield* Emulator.make()
      const response = yield* askToken(url, changes)
      assert.strictEqual(response.status, 401)
      assert.property(response.headers, "www-authenticate")
    })
  }

  test.live("is an API request if it carries a token", function*() {
    const { url } = yield* Emulator.make()
    const headers = { ...form, Authorization: `Bearer ${yield* getToken(url)}` }
    assert.strictEqual((yield* askToken(url, { path: "/v1/oauth/clients", headers })).status, 200)
  })
})

describe("a lenient token endpoint", () => {
  const accepted: Record<string, HttpRequest> = {
    "fields in another order": { body: reordered },
    "a charset": { headers: { "Content-Type": `${formType}; charset=utf-8` } },
    "a media type in capitals": { headers: { "Content-Type": "Application/X-WWW-Form-Urlencoded;CHARSET=UTF-8" } }
  }
  for (const [name, changes] of Object.entries(accepted)) {
    test.live(`accepts ${name}`, function*() {
      const { url } = yield* Emulator.make({ lenient: true })
      assert.strictEqual((yield* askToken(url, changes)).status, 200)
    })
  }
})
