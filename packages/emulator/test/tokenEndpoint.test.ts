import { assert, describe, it } from "@effect/vitest"
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
    const before = yield* Effect.sync(() => Date.now())
    const response = yield* askToken(url)
    const body = json(response)
    assert.strictEqual(response.status, 200)
    assert.strictEqual(response.headers["content-type"], "application/json")
    assert.strictEqual(response.headers["cache-control"], "no-store")
    assert.sameMembers(Object.keys(body), [
      "access_token",
      "token_type",
      "expires_in",
      "scope",
      "application_name",
      "developer.email",
      "issued_at",
      "client_id"
    ])
    assert.match(String(body["access_token"]), /^[A-Za-z0-9._~+/-]+=*$/)
    assert.strictEqual(body["token_type"], "bearer")
    assert.strictEqual(body["expires_in"], 3600)
    assert.strictEqual(body["scope"], "")
    assert.strictEqual(body["application_name"], "Demo application")
    assert.strictEqual(body["developer.email"], "demo@example.invalid")
    assert.strictEqual(body["client_id"], "demo-client")
    assert.isString(body["issued_at"])
    assert.match(String(body["issued_at"]), /^\d+$/)
    assert.isAtLeast(Number(body["issued_at"]), before)
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

  test.live("can be chunked", function*() {
    const { url } = yield* Emulator.make()
    const headers = { "Content-Type": formType, "Transfer-Encoding": "chunked" }
    assert.strictEqual((yield* askToken(url, { headers })).status, 200)
  })

  test.live("can offer another protocol, which is ignored", function*() {
    const { url } = yield* Emulator.make()
    const headers = { "Content-Type": formType, Connection: "Upgrade", Upgrade: "h2c" }
    assert.strictEqual((yield* askToken(url, { headers })).status, 200)
  })

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

describe("a token request gets 405 with the method", () => {
  for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
    test.live(method, function*() {
      const response = yield* refused({ method }, 405, "invalid_request")
      assert.strictEqual(response.headers.allow, "POST")
    })
  }
})

describe("a token request gets 415 if its Content-Type", () => {
  const types: Record<string, HttpRequest["headers"]> = {
    "has a charset": { "Content-Type": `${formType}; charset=utf-8` },
    "has a charset without a space": { "Content-Type": `${formType};charset=UTF-8` },
    "is in capitals": { "Content-Type": "Application/X-WWW-Form-Urlencoded" },
    "is JSON": { "Content-Type": "application/json" },
    "is sent twice": ["Host", "localhost", "Content-Type", formType, "Content-Type", formType],
    "is not sent": {}
  }
  for (const [name, headers] of Object.entries(types)) {
    it.scopedLive(name, () => refused({ ...(headers && { headers }) }, 415, "invalid_request"))
  }
})

describe("a token request gets 400 with the query", () => {
  for (const query of ["?", "?a=b", "?grant_type=client_credentials"]) {
    it.scopedLive(query, () => refused({ path: `${tokenPath}${query}` }, 400, "invalid_request"))
  }
})

describe("a token request", () => {
  it.scopedLive("with an empty body gets invalid_request", () => refused({ body: "" }, 400, "invalid_request"))
  it.scopedLive("with reordered fields gets invalid_request", () =>
    refused(
      { body: `client_id=demo-client&client_secret=${demoSecret}&grant_type=client_credentials` },
      400,
      "invalid_request"
    ))
  it.scopedLive("without a secret gets invalid_request", () =>
    refused({ body: "grant_type=client_credentials&client_id=demo-client" }, 400, "invalid_request"))
  it.scopedLive("without a grant gets invalid_request", () =>
    refused({ body: `client_id=demo-client&client_secret=${demoSecret}` }, 400, "invalid_request"))
  it.scopedLive("with an empty secret gets invalid_request", () =>
    refused({ body: bodyOf("demo-client", "") }, 400, "invalid_request"))
  it.scopedLive("with an additional field gets invalid_request", () =>
    refused({ body: `${demoBody}&scope=` }, 400, "invalid_request"))
  it.scopedLive("with a repeated field gets invalid_request", () =>
    refused({ body: `grant_type=client_credentials&${demoBody}` }, 400, "invalid_request"))
  it.scopedLive("with JSON in the body gets invalid_request", () =>
    refused({ body: JSON.stringify({ grant_type: "client_credentials" }) }, 400, "invalid_request"))
  it.scopedLive("with bytes that are not text gets invalid_request", () =>
    refused({ body: Uint8Array.of(0xff, 0xfe, 0x00) }, 400, "invalid_request"))

  it.scopedLive("with another grant gets unsupported_grant_type", () =>
    refused({ body: demoBody.replace("client_credentials", "password") }, 400, "unsupported_grant_type"))
  it.scopedLive("of the password flow gets unsupported_grant_type", () =>
    refused({ body: "grant_type=password&username=invented&password=invented" }, 400, "unsupported_grant_type"))

  it.scopedLive("with a wrong secret gets invalid_client", () =>
    refused({ body: bodyOf("demo-client", "wrong") }, 401, "invalid_client"))
  test.live("of an unknown client gets the same response as one with a wrong secret", function*() {
    const unknown = yield* refused({ body: bodyOf("unknown", demoSecret) }, 401, "invalid_client")
    const wrong = yield* refused({ body: bodyOf("demo-client", "wrong") }, 401, "invalid_client")
    assert.strictEqual(unknown.text, wrong.text)
  })
  it.scopedLive("with the secret of another client gets invalid_client", () =>
    refused({ body: bodyOf("plain-id", demoSecret) }, 401, "invalid_client", specialCharacters))
  it.scopedLive("with a byte after the secret gets invalid_client", () =>
    refused({ body: `${demoBody}\n` }, 401, "invalid_client"))

  const encoded = {
    "percent-encoded secret": bodyOf("demo-client", encodeURIComponent(demoSecret)),
    "form-encoded": new URLSearchParams({
      grant_type: "client_credentials",
      client_id: "demo-client",
      client_secret: demoSecret
    }).toString(),
    "form-encoded with spaces as plus": new URLSearchParams({
      grant_type: "client_credentials",
      client_id: "two words=id",
      client_secret: "a b+c/d=e%f~g%20h%zz="
    }).toString(),
    "percent-encoded grant": demoBody.replace("client_credentials", "client%5Fcredentials"),
    "encoded as a whole": encodeURIComponent(demoBody),
    "needless escape": bodyOf("plain%2Did", "plain-secret")
  }
  for (const [name, body] of Object.entries(encoded)) {
    test.live(`with encoded values gets invalid_client, and the description says so: ${name}`, function*() {
      const { description } = yield* refused({ body }, 401, "invalid_client", specialCharacters)
      assert.include(description, "raw")
    })
  }
  test.live("with a wrong secret that holds an escape gets no description of encoding", function*() {
    const { description } = yield* refused({ body: bodyOf("demo-client", "wrong%2B") }, 401, "invalid_client")
    assert.notInclude(description, "raw")
  })

  it.scopedLive("with a body of more than 64 KiB gets 413", () =>
    refused({ body: demoBody.padEnd(65 * 1024, "x") }, 413, "invalid_request"))
  it.scopedLive("with a chunked body of more than 64 KiB gets 413", () =>
    refused(
      {
        headers: { "Content-Type": formType, "Transfer-Encoding": "chunked" },
        body: demoBody.padEnd(300 * 1024, "x")
      },
      413,
      "invalid_request"
    ))
  it.scopedLive("with a body of exactly 64 KiB is read, and gets invalid_client", () =>
    refused({ body: demoBody.padEnd(64 * 1024, "x") }, 401, "invalid_client"))

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
  const form = { "Content-Type": formType }
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

describe("a token request with the header Authorization", () => {
  for (const scheme of ["Basic", "basic"]) {
    test.live(`of the scheme ${scheme} gets invalid_request, because the credentials must be in the body`, function*() {
      const headers = { "Content-Type": formType, Authorization: `${scheme} aW52ZW50ZWQ6aW52ZW50ZWQ=` }
      const { description } = yield* refused({ headers }, 400, "invalid_request")
      assert.include(description, "body")
    })
  }
})

describe("a lenient token endpoint", () => {
  const reordered = `client_secret=${demoSecret}&grant_type=client_credentials&client_id=demo-client`
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

  const lenient = { lenient: true }
  it.scopedLive("refuses an additional field", () =>
    refused({ body: `scope=&${reordered}` }, 400, "invalid_request", lenient))
  it.scopedLive("refuses a repeated field", () =>
    refused({ body: `${reordered}&client_id=demo-client` }, 400, "invalid_request", lenient))
  it.scopedLive("refuses a wrong secret", () =>
    refused(
      { body: `client_secret=wrong&${bodyOf("demo-client", "").replace(/&client_secret=$/, "")}` },
      401,
      "invalid_client",
      lenient
    ))
  it.scopedLive("refuses another media type", () =>
    refused({ headers: { "Content-Type": `${formType}s` } }, 415, "invalid_request", lenient))
})
