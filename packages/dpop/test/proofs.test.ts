/** Proofs over a client without a network, on the test clock. */
import { createHash, generateKeyPairSync } from "node:crypto"
import { Headers, HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type StoreAuth, TokenRequest } from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { test } from "@store-api/testing/test"
import { Effect, FiberRef, Redacted, Stream, TestClock } from "effect"
import {
  calculateJwkThumbprint,
  decodeJwt,
  decodeProtectedHeader,
  EmbeddedJWK,
  jwtVerify
} from "jose"
import { newKey, pemOf } from "./support/keys.js"

const token = "an-invented-token"
const api = "https://api.store.example"

type Answer = (request: HttpClientRequest.HttpClientRequest) => Response

/** A client that answers in order, the last answer for all further requests, and the requests that it received. */
const scripted = (...answers: readonly [Answer, ...ReadonlyArray<Answer>]) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const redacted: Array<ReadonlyArray<string | RegExp>> = []
  const client = HttpClient.make((request) =>
    Effect.gen(function*() {
      redacted.push(yield* FiberRef.get(Headers.currentRedactedNames))
      const answer = answers[requests.length] ?? answers.at(-1) ?? answers[0]
      requests.push(request)
      return HttpClientResponse.fromWeb(request, answer(request))
    })
  )
  const proofs = () => requests.map(({ headers }) => headers["dpop"] ?? "")
  return { client, requests, redacted, proofs }
}

const ok: Answer = () => new Response("{}")

const withNonce = (nonce: string): Answer => () =>
  new Response("{}", { headers: { "dpop-nonce": nonce } })

const challenge = (nonce: string): Answer => () =>
  new Response("", {
    status: 401,
    headers: { "dpop-nonce": nonce, "www-authenticate": `DPoP error="use_dpop_nonce"` }
  })

const base = {
  authUrl: "https://auth.store.example",
  apiUrl: api,
  clientId: "demo-client",
  clientSecret: Redacted.make("an-invented-secret")
}

/** The client that `bind` gives to `transformClient`, over the given one. */
const bound = (client: HttpClient.HttpClient, options: Dpop.Options = {}) =>
  Effect.map(
    Dpop.make(options),
    (dpop) => changedBy(dpop.bind(base)).transformClient(client)
  )

/** `bind` always sets this option. */
const changedBy = (options: StoreAuth.Options) => ({
  transformClient: options.transformClient ?? ((client: HttpClient.HttpClient) => client),
  request: options.endpoint?.request ?? TokenRequest.specification
})

const withToken = HttpClientRequest.setHeader("authorization", `DPoP ${token}`)

describe("a proof", () => {
  test("is signed with the key whose thumbprint the service has", function*() {
    const { client, proofs } = scripted(ok)
    const dpop = yield* Dpop.make({ privateKey: newKey() })
    yield* changedBy(dpop.bind(base)).transformClient(client).get(`${api}/orders`)
    const [proof = ""] = proofs()
    const { protectedHeader } = yield* Effect.promise(() =>
      jwtVerify(proof, EmbeddedJWK, { algorithms: ["ES256"], typ: "dpop+jwt" })
    )
    const { jwk } = protectedHeader
    assert(jwk !== undefined)
    deepStrictEqual(Object.keys(jwk).sort(), ["crv", "kty", "x", "y"])
    const thumbprint = yield* Effect.promise(() => calculateJwkThumbprint(jwk))
    assert.strictEqual(dpop.thumbprint, thumbprint)
  })

  test("a proof names the request by its method, its URL without the query, and the hash of its token", function*() {
    const { client, proofs } = scripted(ok)
    const request = HttpClientRequest.put(`${api}/orders/1?page=2#top`, {
      urlParams: { a: "b" }
    })
    yield* (yield* bound(client)).execute(withToken(request))
    const { ath, htm, htu } = decodeJwt(proofs()[0] ?? "")
    deepStrictEqual({ ath, htm, htu }, {
      ath: createHash("sha256").update(token).digest("base64url"),
      htm: "PUT",
      htu: `${api}/orders/1`
    })
  })

  test("a proof of a request without a token has only the claims that RFC 9449 requires", function*() {
    const { client, proofs } = scripted(ok)
    yield* (yield* bound(client)).post("https://auth.store.example/token")
    deepStrictEqual(Object.keys(decodeJwt(proofs()[0] ?? "")).sort(), [
      "htm",
      "htu",
      "iat",
      "jti"
    ])
  })

  test("is for the URL that the client in the context sends to", function*() {
    const { client, proofs } = scripted(ok)
    const prefixed = HttpClient.mapRequest(client, HttpClientRequest.prependUrl(`${api}/v1`))
    yield* (yield* bound(prefixed)).get("/orders")
    assert.strictEqual(decodeJwt(proofs()[0] ?? "")["htu"], `${api}/v1/orders`)
  })

  test("has the time of Effect's Clock in whole seconds", function*() {
    const { client, proofs } = scripted(ok)
    yield* TestClock.setTime(1_700_000_000_999)
    yield* (yield* bound(client)).get(`${api}/orders`)
    assert.strictEqual(decodeJwt(proofs()[0] ?? "").iat, 1_700_000_000)
  })

  test("a proof is used for one attempt of a request, whoever retries it", function*() {
    const { client, proofs } = scripted(ok)
    const failing = HttpClient.filterStatus(client, () => false)
    const retried = HttpClient.retry(failing, { times: 1 })
    const proving = HttpClient.retry(yield* bound(retried), { times: 1 })
    yield* Effect.exit(proving.get(`${api}/orders`))
    assert.strictEqual(new Set(proofs().map((proof) => decodeJwt(proof).jti)).size, 4)
  })

  test("is added after the user's own transformClient", function*() {
    const { client, requests } = scripted(ok)
    const dpop = yield* Dpop.make()
    const { transformClient } = changedBy(dpop.bind({
      ...base,
      transformClient: HttpClient.mapRequest(
        HttpClientRequest.setHeader("dpop", "a stale proof")
      )
    }))
    yield* transformClient(client).get(`${api}/orders`)
    const [sent] = requests
    assert.strictEqual(sent?.headers["dpop"]?.split(".").length, 3)
  })

  test("leaves a request with an invalid URL to the client", function*() {
    const { client, requests } = scripted(ok)
    yield* Effect.exit((yield* bound(client)).get("no URL"))
    assert.isUndefined(requests[0]?.headers["dpop"])
  })

  test("is redacted in the logs and spans of the client", function*() {
    const { client, redacted, requests } = scripted(ok)
    yield* (yield* bound(client)).get(`${api}/orders`)
    const shown = Headers.redact(requests[0]?.headers ?? Headers.empty, redacted[0] ?? [])
    assert.isTrue(Redacted.isRedacted(shown["dpop"]))
    assert.include(requests[0]?.headers["dpop"], "ey", "control")
  })
})

describe("a nonce", () => {
  test("the nonce of a response is in the next proof for that origin alone", function*() {
    const { client, proofs } = scripted(withNonce("first"), withNonce("second"))
    const proving = yield* bound(client)
    yield* proving.get(`${api}/orders`)
    yield* proving.get("https://other.store.example/orders")
    yield* proving.get(`${api}/stock`)
    yield* proving.get("https://other.store.example/stock")
    const nonces = proofs().map((proof) => decodeJwt(proof)["nonce"])
    deepStrictEqual(nonces, [undefined, undefined, "first", "second"])
  })

  test("the nonce of an error status counts even if the client fails with that status", function*() {
    const { client, proofs } = scripted(challenge("first"), ok)
    const proving = yield* bound(HttpClient.filterStatusOk(client))
    yield* proving.execute(withToken(HttpClientRequest.get(`${api}/orders`)))
    deepStrictEqual(proofs().map((proof) => decodeJwt(proof)["nonce"]), [undefined, "first"])
  })

  /** Sends another request before the first one is repeated, and returns the URL and the nonce of each proof. */
  const withOtherBeforeRepeat = Effect.gen(function*() {
    const { client, proofs } = scripted(challenge("own"), withNonce("of another"), ok)
    let other: Effect.Effect<unknown> = Effect.void
    let prepared = 0
    const delayed = HttpClient.mapRequestEffect(client, (request) => {
      prepared++
      return Effect.as(prepared === 2 ? other : Effect.void, request)
    })
    const proving = yield* bound(delayed)
    other = Effect.exit(proving.execute(withToken(HttpClientRequest.get(`${api}/stock`))))
    yield* proving.execute(withToken(HttpClientRequest.get(`${api}/orders`)))
    return proofs().map((proof) => decodeJwt(proof)).map(({ htu, nonce }) => [htu, nonce])
  })

  test("a repeat has the nonce of its own response, whatever came in between", function*() {
    deepStrictEqual((yield* withOtherBeforeRepeat)[2], [`${api}/orders`, "own"])
  })

  test("no other request gets the nonce of a challenge before its repeat", function*() {
    deepStrictEqual((yield* withOtherBeforeRepeat)[1], [`${api}/stock`, undefined])
  })

  test("the nonce of a challenge stays if the response to its repeat has none", function*() {
    const { client, proofs } = scripted(challenge("own"), ok)
    const proving = yield* bound(client)
    const get = proving.execute(withToken(HttpClientRequest.get(`${api}/orders`)))
    yield* get
    yield* get
    const nonces = proofs().map((proof) => decodeJwt(proof)["nonce"])
    deepStrictEqual(nonces, [undefined, "own", "own"])
  })
})

describe("a request that is refused because of its nonce", () => {
  const stream = HttpClientRequest.bodyStream(Stream.make(new Uint8Array(1)))

  test("is repeated once", function*() {
    const { client, requests } = scripted(challenge("first"), challenge("second"))
    const request = HttpClientRequest.bodyText(HttpClientRequest.post(`${api}/orders`), "body")
    const response = yield* (yield* bound(client)).execute(withToken(request))
    deepStrictEqual([response.status, requests.length], [401, 2])
  })

  test.each([
    ["it has no token", HttpClientRequest.get(`${api}/orders`), challenge("first")],
    [
      "its body is a stream",
      withToken(stream(HttpClientRequest.post(api))),
      challenge("first")
    ],
    [
      "the response has another challenge",
      withToken(HttpClientRequest.get(api)),
      () =>
        new Response("", {
          status: 401,
          headers: { "dpop-nonce": "first", "www-authenticate": `DPoP error="invalid_token"` }
        })
    ],
    [
      "the response has no nonce",
      withToken(HttpClientRequest.get(api)),
      () =>
        new Response("", {
          status: 401,
          headers: { "www-authenticate": `DPoP error="use_dpop_nonce"` }
        })
    ]
  ])("is not repeated if %s", function*([, request, answer]) {
    const { client, requests } = scripted(answer)
    const response = yield* (yield* bound(client)).execute(request)
    deepStrictEqual([response.status, requests.length], [401, 1])
  })
})

describe("bind", () => {
  const request = TokenRequest.clientSecretPost({ scope: "orders:read" })
  const bindRequest = Effect.map(Dpop.make(), ({ bind, thumbprint }) => ({
    options: bind({ ...base, endpoint: { path: "/token", request } }),
    thumbprint
  }))

  test("bind keeps the options that it does not change", function*() {
    const { options } = yield* bindRequest
    deepStrictEqual([options.endpoint.path, options.clientId], ["/token", "demo-client"])
  })

  test("bind keeps the rest of a token request", function*() {
    const { options } = yield* bindRequest
    const { identity, tokenType } = changedBy(options).request
    deepStrictEqual(changedBy(options).request, { ...request, identity, tokenType })
  })

  test("bind expects tokens of the type DPoP", function*() {
    const { options } = yield* bindRequest
    assert.strictEqual(changedBy(options).request.tokenType, "DPoP")
  })

  test("bind adds the thumbprint of its key to the identity of the request", function*() {
    const { options, thumbprint } = yield* bindRequest
    const { identity } = changedBy(options).request
    assert.isString(request.identity)
    assert.strictEqual(identity, `dpop ${thumbprint} ${request.identity as string}`)
  })

  test("keeps an identity redacted", function*() {
    const { bind, thumbprint } = yield* Dpop.make()
    const request = TokenRequest.clientSecretPost({ key: Redacted.make("an invented key") })
    const { identity } = changedBy(bind({ ...base, endpoint: { request } })).request
    assert(Redacted.isRedacted(identity))
    assert.include(Redacted.value(identity), `dpop ${thumbprint} `)
    assert.include(Redacted.value(identity), "an invented key")
  })
})

describe("a key", () => {
  test("a given key has the same thumbprint in each process", function*() {
    const privateKey = newKey()
    const [one, other] = [yield* Dpop.make({ privateKey }), yield* Dpop.make({ privateKey })]
    assert.strictEqual(one.thumbprint, other.thumbprint)
  })

  test("a generated key has a thumbprint of its own", function*() {
    const [one, other] = [yield* Dpop.make(), yield* Dpop.make()]
    assert.notStrictEqual(one.thumbprint, other.thumbprint)
  })

  test("a key may have the escaped line breaks of environment variables", function*() {
    const pem = pemOf()
    const [one, other] = yield* Effect.all([
      Dpop.make({ privateKey: Redacted.make(pem) }),
      Dpop.make({ privateKey: Redacted.make(pem.replaceAll("\n", "\\n")) })
    ])
    assert.strictEqual(one.thumbprint, other.thumbprint)
  })

  const rsa = () =>
    generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
      type: "pkcs8",
      format: "pem"
    }).toString()

  const sec1 = () =>
    generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
      type: "sec1",
      format: "pem"
    }).toString()

  test.each<[string, () => unknown]>([
    ["on another curve", () => Redacted.make(pemOf("P-384"))],
    ["of RSA", () => Redacted.make(rsa())],
    ["in another format", () => Redacted.make(sec1())],
    ["that is empty", () => Redacted.make("")],
    ["without PEM lines", () => Redacted.make("an invented text")],
    ["that is undefined inside", () => Redacted.make(undefined)],
    ["that is not redacted", pemOf]
  ])("%s is a ConfigurationError that does not show it", function*([, make]) {
    const privateKey = make() as Redacted.Redacted // as from JavaScript
    const error = yield* Effect.flip(Dpop.make({ privateKey }))
    deepStrictEqual([error._tag, error.option], ["ConfigurationError", "Dpop.privateKey"])
    assert.strictEqual(
      error.reason,
      "must be a Redacted EC P-256 private key (PKCS #8 in PEM)"
    )
  })

  test("cannot be read from the service", function*() {
    const { bind, ...rest } = yield* Dpop.make({ privateKey: newKey() })
    deepStrictEqual(Object.keys(rest), ["thumbprint"])
    assert.isFunction(bind)
  })
})

test("control: a changed proof is refused", function*() {
  const { client, proofs } = scripted(ok)
  yield* (yield* bound(client)).get(`${api}/orders`)
  const [proof = ""] = proofs()
  assert.strictEqual(decodeProtectedHeader(proof).alg, "ES256")
  const changed = `${proof.slice(0, -8)}AAAAAAAA`
  const result = yield* Effect.exit(
    Effect.tryPromise(() => jwtVerify(changed, EmbeddedJWK, { algorithms: ["ES256"] }))
  )
  assert.strictEqual(result._tag, "Failure")
})
