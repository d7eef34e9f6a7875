import { createHash, randomUUID } from "node:crypto"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Clock, Effect, Redacted, TestClock } from "effect"
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose"
import {
  askToken,
  callApi,
  demoSecret,
  formType,
  type HttpResponse,
  json,
  tokenPath
} from "./utils.js"

const newKey = Effect.promise(() => generateKeyPair("ES256"))
type Key = Effect.Effect.Success<typeof newKey>

const seconds = Effect.map(Clock.currentTimeMillis, (now) => Math.floor(now / 1000))

const sign = (key: Key, header: object, claims: JWTPayload) =>
  Effect.promise(() =>
    new SignJWT(claims).setProtectedHeader({ alg: "ES256", ...header }).sign(key.privateKey)
  )

/** A correct proof, with changes. */
const prove = (key: Key, htm: string, htu: string, changes: object = {}, typ = "dpop+jwt") =>
  Effect.gen(function*() {
    const jwk = yield* Effect.promise(() => exportJWK(key.publicKey))
    const claims = { htm, htu, jti: randomUUID(), iat: yield* seconds, ...changes }
    return yield* sign(key, { typ, jwk }, claims)
  })

const askBound = (url: string, proof: string) =>
  askToken(url, { headers: { "Content-Type": formType, DPoP: proof } })

const nonceOf = ({ headers }: HttpResponse) => String(headers["dpop-nonce"])
const hashOf = (token: string) => createHash("sha256").update(token).digest("base64url")

/** A bound token, and how to call the API with it. */
const withBoundToken = (dpop: Emulator.Options["dpop"]) =>
  Effect.gen(function*() {
    const { url } = yield* Emulator.make({ dpop })
    const key = yield* newKey
    const endpoint = `${url}${tokenPath}`
    const first = yield* askBound(url, yield* prove(key, "POST", endpoint))
    const answer = first.status === 200
      ? first
      : yield* askBound(url, yield* prove(key, "POST", endpoint, { nonce: nonceOf(first) }))
    const token = String(json(answer)["access_token"])
    const send = (proof: string) =>
      callApi(url, token, { headers: { Authorization: `DPoP ${token}`, DPoP: proof } })
    const call = (changes: object = {}, by = key, typ?: string) =>
      Effect.flatMap(
        prove(by, "GET", `${url}/orders`, { ath: hashOf(token), ...changes }, typ),
        send
      )
    return { url, key, first, answer, token, send, call }
  })

const errorOf = ({ headers, status }: HttpResponse) =>
  `${status} ${/error="(\w+)"/.exec(String(headers["www-authenticate"]))?.[1]}`

test("A bound token works with a proof of its key and for nobody else.", function*() {
  const { answer, call, token, url } = yield* withBoundToken("no-nonce")
  deepStrictEqual(json(answer)["token_type"], "DPoP")
  deepStrictEqual((yield* call()).status, 200)
  deepStrictEqual(errorOf(yield* call({}, yield* newKey)), "401 invalid_token")
  deepStrictEqual((yield* callApi(url, token)).status, 401)
})

test("Each wrong part of a proof is refused.", function*() {
  const { call, key, send, token, url } = yield* withBoundToken("no-nonce")
  const now = yield* seconds
  const wrong = [
    { htm: "POST" },
    { htu: `${url}/orders?page=1` },
    { ath: hashOf("another-token") },
    { iat: now - 27 },
    { iat: now + 17 },
    { htm: undefined },
    { htu: undefined },
    { ath: undefined },
    { iat: undefined },
    { jti: undefined }
  ]
  for (const changes of wrong) {
    deepStrictEqual(errorOf(yield* call(changes)), "401 invalid_dpop_proof")
  }
  deepStrictEqual(errorOf(yield* call({}, key, "JWT")), "401 invalid_dpop_proof")
  const good = yield* prove(key, "GET", `${url}/orders`, { ath: hashOf(token) })
  const tampered = `${good.slice(0, -8)}AAAAAAAA`
  deepStrictEqual(errorOf(yield* send(tampered)), "401 invalid_dpop_proof")
  deepStrictEqual((yield* send(good)).status, 200)
  deepStrictEqual(errorOf(yield* send(good)), "401 invalid_dpop_proof")
  deepStrictEqual((yield* call({ iat: now - 24 })).status, 200)
  deepStrictEqual((yield* call({ iat: now + 14 })).status, 200)
})

test("The refusal of a proof names its time only if that is wrong.", function*() {
  const { url } = yield* Emulator.make({ dpop: "no-nonce" })
  const key = yield* newKey
  const now = yield* seconds
  const time = "iat is more than 25 s old or 15 s ahead by the emulator's clock."
  const other = "The proof must be a signed JWT with typ, jwk, jti, htm, htu and iat."
  const rows: ReadonlyArray<readonly [changes: object, reason: string]> = [
    [{ iat: now - 27 }, time],
    [{ iat: now + 17 }, time],
    [{ iat: undefined }, other],
    [{ iat: "now" }, other],
    [{ jti: undefined }, other]
  ]
  for (const [changes, reason] of rows) {
    const proof = yield* prove(key, "POST", `${url}${tokenPath}`, changes)
    deepStrictEqual(json(yield* askBound(url, proof))["error_description"], reason)
  }
})

test("A nonce is valid for a minute at both servers.", function*() {
  const { answer, call, first } = yield* withBoundToken("nonce")
  deepStrictEqual([first.status, json(first)["error"]], [400, "use_dpop_nonce"])
  const nonce = nonceOf(answer)
  deepStrictEqual((yield* call({ nonce })).status, 200)
  deepStrictEqual((yield* call({ nonce })).status, 200)
  yield* TestClock.adjust("1 minute")
  const stale = yield* call({ nonce })
  deepStrictEqual(errorOf(stale), "401 use_dpop_nonce")
  deepStrictEqual((yield* call({ nonce: nonceOf(stale) })).status, 200)
})

test("A nonce per request is valid once.", function*() {
  const { answer, call } = yield* withBoundToken("nonce-per-request")
  const nonce = nonceOf(answer)
  deepStrictEqual((yield* call({ nonce })).status, 200)
  const repeated = yield* call({ nonce })
  deepStrictEqual(errorOf(repeated), "401 use_dpop_nonce")
  deepStrictEqual((yield* call({ nonce: nonceOf(repeated) })).status, 200)
})

const askWith = (url: string, fields: Record<string, string>) =>
  askToken(url, {
    body: new URLSearchParams({ grant_type: "client_credentials", ...fields }).toString()
  })

/** An emulator with a client that signs assertions, and what it says about an assertion. */
const withAssertions = Effect.gen(function*() {
  const key = yield* newKey
  const publicKey = yield* Effect.promise(() => exportSPKI(key.publicKey))
  const clientSecret = Redacted.make("not-used")
  const { url } = yield* Emulator.make({
    clientAuthentication: "private_key_jwt",
    clients: [{ clientId: "key-client", clientSecret, publicKey }]
  })
  yield* TestClock.adjust("1 hour")
  const now = yield* seconds
  const assert = (changes: object = {}, by = key) =>
    sign(by, {}, {
      iss: "key-client",
      sub: "key-client",
      aud: `${url}${tokenPath}`,
      exp: now + 60,
      jti: randomUUID(),
      ...changes
    })
  const ask = (client_assertion: string, type = "jwt-bearer") =>
    Effect.map(
      askWith(url, {
        client_assertion_type: `urn:ietf:params:oauth:client-assertion-type:${type}`,
        client_assertion
      }),
      (response) =>
        response.status === 200 ? "200" : String(json(response)["error_description"])
    )
  return { ask, assert, now, url }
})

test("An assertion is valid once.", function*() {
  const { ask, assert } = yield* withAssertions
  const good = yield* assert()
  deepStrictEqual([yield* ask(good), yield* ask(good), yield* ask(yield* assert())], [
    "200",
    "The client_assertion was used before.",
    "200"
  ])
})

test("An assertion may name the issuer instead of the token endpoint.", function*() {
  const { ask, assert, url } = yield* withAssertions
  deepStrictEqual(yield* ask(yield* assert({ aud: url })), "200")
})

test("An assertion that is not valid is refused with its problem.", function*() {
  const { ask, assert, now, url } = yield* withAssertions
  const wrong: ReadonlyArray<readonly [changes: object, problem: string]> = [
    [{ iss: "other" }, "has a missing or wrong iss"],
    [{ sub: "other" }, "has a missing or wrong sub"],
    [
      { aud: `${url}/other` },
      "must have as aud the URL of the emulator or of its token endpoint"
    ],
    [{ aud: undefined }, "must have as aud the URL of the emulator or of its token endpoint"],
    [{ exp: now - 1 }, "has expired"],
    [{ exp: undefined }, "has a missing or wrong exp"],
    [{ jti: undefined }, "has a missing or wrong jti"]
  ]
  for (const [changes, problem] of wrong) {
    deepStrictEqual(yield* ask(yield* assert(changes)), `The client_assertion ${problem}.`)
  }
  const notSigned = "The client_assertion must be a JWT signed with the client's key."
  deepStrictEqual(yield* ask(yield* assert({}, yield* newKey)), notSigned)
  deepStrictEqual(yield* ask("no-assertion"), notSigned)
  deepStrictEqual(
    yield* ask(yield* assert(), "saml2-bearer"),
    "The client_assertion needs the client_assertion_type " +
      "urn:ietf:params:oauth:client-assertion-type:jwt-bearer."
  )
})

test("A client id alone is enough only if the option says so.", function*() {
  const open = yield* Emulator.make({ clientAuthentication: "none" })
  const closed = yield* Emulator.make({ clientAuthentication: "client_secret_post" })
  const alone = { client_id: "demo-client" }
  deepStrictEqual((yield* askWith(open.url, alone)).status, 200)
  deepStrictEqual((yield* askWith(open.url, { client_id: "unknown" })).status, 401)
  deepStrictEqual(
    (yield* askWith(open.url, { ...alone, client_secret: demoSecret })).status,
    401
  )
  deepStrictEqual((yield* askWith(closed.url, alone)).status, 401)
})
