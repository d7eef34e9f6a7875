/**
 * Checks proofs (RFC 9449) and client assertions (RFC 7523) with `jose`, so that the emulator shares no mistake with
 * the clients that it tests.
 */
import { createHash, randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import type * as Jose from "jose"
import type { Client } from "../Client.js"
import type { Request } from "./request.js"
import type { Settings } from "./settings.js"

export type Signatures = ReturnType<typeof make>

/** Why a proof is refused: the code of RFC 9449 sections 7 and 8, and a sentence. */
export interface ProofProblem {
  readonly error: "invalid_dpop_proof" | "use_dpop_nonce"
  readonly reason: string
}

export const algorithms = ["ES256", "ES384", "ES512", "EdDSA", "PS256", "RS256"]

/** Seconds that a proof may be ahead, and old, as in Keycloak. */
const ahead = 15
const age = 25
const nonceLife = 60_000

// Only an emulator that needs it loads it.
const loadJose = Effect.promise(() => import("jose"))

const originOf = ({ header }: Request, { tls }: Settings) =>
  `${tls ? "https" : "http"}://${header("host").join()}`

/** Returns the URL of a request without its query, as `htu` and `aud` name it. */
const urlOf = (request: Request, settings: Settings) =>
  `${originOf(request, settings)}${request.path}`

/** Keeps texts until a time, in milliseconds. */
const makeMemory = () => {
  const ends = new Map<string, number>()
  return {
    add: (text: string, end: number, now: number) => {
      for (const [old, oldEnd] of ends) if (oldEnd <= now) ends.delete(old)
      ends.set(text, end)
    },
    has: (text: string, now: number) => (ends.get(text) ?? 0) > now,
    delete: (text: string) => ends.delete(text),
    clear: () => ends.clear()
  }
}

/** Explains an error of `jose` without its message, which may quote the assertion. */
const problemOfAssertion = (error: unknown): string => {
  if (!Predicate.hasProperty(error, "code")) return notSigned
  if (error.code === "ERR_JWT_EXPIRED") return "has expired"
  if (error.code !== "ERR_JWT_CLAIM_VALIDATION_FAILED") return notSigned
  if (!Predicate.hasProperty(error, "claim")) return notSigned
  return error.claim === "aud"
    ? "must have as aud the URL of the emulator or of its token endpoint"
    : `has a missing or wrong ${String(error.claim)}`
}

/** Whether the time of a proof is wrong, and not the rest of it. */
const isTimeProblem = (error: unknown): boolean =>
  Predicate.hasProperty(error, "claim") && error.claim === "iat" &&
  Predicate.hasProperty(error, "reason") && error.reason === "check_failed"

const problemOfProof = (error: unknown): string =>
  isTimeProblem(error)
    ? `iat is more than ${age} s old or ${ahead} s ahead by the emulator's clock.`
    : "The proof must be a signed JWT with typ, jwk, jti, htm, htu and iat."

const notSigned = "must be a JWT signed with the client's key"

export const make = (settings: Settings) => {
  const { dpop } = settings
  const nonces = makeMemory()
  const usedIds = makeMemory()
  let current = ""

  /** Sends a nonce with the response: a new one if the last is old or nonces are valid once. */
  const sendNonce = ({ outgoing }: Request) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      if (dpop === undefined || dpop === "no-nonce") return
      if (dpop === "nonce-per-request" || !nonces.has(current, now)) {
        current = randomUUID()
        nonces.add(current, now + nonceLife, now)
      }
      outgoing.setHeader("DPoP-Nonce", current)
    })

  /** Returns whether an id of a key is new, and keeps it. */
  const isFirstUse = (id: string, end: number, now: number) => {
    if (usedIds.has(id, now)) return false
    usedIds.add(id, end, now)
    return true
  }

  const problemOf = (
    { htm, htu, ath, jti = "", nonce }: Jose.JWTPayload,
    thumbprint: string,
    request: Request,
    token: string | undefined,
    now: number
  ): ProofProblem | undefined => {
    const invalid = (reason: string): ProofProblem => ({ error: "invalid_dpop_proof", reason })
    const hash = token === undefined
      ? undefined
      : createHash("sha256").update(token).digest("base64url")
    if (htm !== request.method) return invalid("htm is not the method of the request.")
    if (htu !== urlOf(request, settings)) return invalid("htu is not the URL of the request.")
    if (ath !== hash) return invalid("ath is not the hash of the token.")
    if (!isFirstUse(`${thumbprint} ${jti}`, now + (ahead + age) * 1000, now)) {
      return invalid("jti was used before.")
    }
    if (dpop === "no-nonce") return undefined
    const isKnown = typeof nonce === "string" && nonces.has(nonce, now)
    if (!isKnown) {
      return { error: "use_dpop_nonce", reason: "The nonce is missing or not valid." }
    }
    if (dpop === "nonce-per-request") nonces.delete(nonce)
    return undefined
  }

  /** Returns the thumbprint of the key that signed a proof, for a request with the token if there is one. */
  const checkProof = (request: Request, token?: string) =>
    Effect.gen(function*() {
      const proofs = request.header("dpop")
      const jose = yield* loadJose
      const time = yield* DateTime.now
      const now = DateTime.toEpochMillis(time)
      const verified = yield* Effect.tryPromise({
        try: () =>
          jose.jwtVerify(proofs.join(), jose.EmbeddedJWK, {
            typ: "dpop+jwt",
            algorithms,
            requiredClaims: ["jti", "htm", "htu", "iat"],
            currentDate: DateTime.toDateUtc(time),
            clockTolerance: ahead,
            maxTokenAge: age - ahead
          }),
        catch: (error): ProofProblem => ({
          error: "invalid_dpop_proof",
          reason: proofs.length === 1
            ? problemOfProof(error)
            : "The request must have one header DPoP."
        })
      })
      const { jwk } = verified.protectedHeader
      const thumbprint = yield* Effect.promise(() =>
        jose.calculateJwkThumbprint(jwk as Jose.JWK) // `EmbeddedJWK` requires it
      )
      const problem = problemOf(verified.payload, thumbprint, request, token, now)
      return problem === undefined ? thumbprint : yield* Effect.fail(problem)
    })

  /** Returns the client that signed the assertion, or fails with the end of a sentence about its problem. */
  const findSigner = (request: Request, assertion: string, clients: ReadonlyArray<Client>) =>
    Effect.gen(function*() {
      const jose = yield* loadJose
      const time = yield* DateTime.now
      const now = DateTime.toEpochMillis(time)
      const verify = ({ clientId, publicKey = "" }: Client) =>
        Effect.gen(function*() {
          const key = yield* Effect.tryPromise({
            try: () =>
              jose.importSPKI(publicKey, jose.decodeProtectedHeader(assertion).alg ?? ""),
            catch: problemOfAssertion
          })
          const { payload } = yield* Effect.tryPromise({
            try: () =>
              jose.jwtVerify(assertion, key, {
                algorithms,
                issuer: clientId,
                subject: clientId,
                // The issuer, or the token endpoint (RFC 7523 section 3).
                audience: [urlOf(request, settings), originOf(request, settings)],
                requiredClaims: ["exp", "jti"],
                currentDate: DateTime.toDateUtc(time)
              }),
            catch: problemOfAssertion
          })
          return payload
        })
      let problem = "is of an unknown client"
      for (const client of clients) {
        const verified = yield* Effect.either(verify(client))
        if (Either.isLeft(verified)) {
          problem = verified.left
          continue
        }
        const { exp = 0, jti } = verified.right
        return isFirstUse(`${client.clientId} ${jti}`, exp * 1000, now)
          ? client
          : yield* Effect.fail("was used before")
      }
      return yield* Effect.fail(problem)
    })

  return { sendNonce, forgetNonces: Effect.sync(nonces.clear), checkProof, findSigner }
}
