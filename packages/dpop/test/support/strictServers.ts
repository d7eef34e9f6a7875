/**
 * A token endpoint and an API on loopback that check every proof as RFC 9449 §4.3 demands. They use `jose`, and so
 * share no mistake with the package.
 */
import { createHash, randomUUID } from "node:crypto"
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse
} from "node:http"
import { listen } from "@store-api/testing/loopback"
import { Effect, type Scope } from "effect"
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from "jose"

/** `stable` nonces are valid until `rotate`. `single` ones are valid for one proof. */
export type NonceMode = "none" | "stable" | "single"

interface IssuedToken {
  readonly thumbprint: string
  readonly expiresAt: number
  isRevoked: boolean
}

/** Seconds. The time of a proof may differ by this much from that of the server. */
const window = 5

/** One server's record of proofs and nonces. */
export interface Checks {
  mode: NonceMode
  /** Why proofs were refused, except for their nonces. */
  readonly problems: Array<string>
  readonly proofs: Array<string>
  /** The number of proofs with a nonce that is unknown, used or missing. */
  challenges: number
  /** Makes every nonce that was sent so far invalid. */
  readonly rotate: () => void
}

interface Server extends Checks {
  readonly url: string
}

export interface TokenEndpoint extends Server {
  /** The lifetime of new tokens, in seconds. */
  life: number
  /** The body of each token request, also of those that were refused. */
  readonly bodies: Array<URLSearchParams>
  readonly issued: Map<string, IssuedToken>
}

export interface Api extends Server {
  /** The paths of requests with the token of another key. */
  readonly otherKeys: ReadonlyArray<string>
  /** The status, method and path of each response, such as `200 GET /orders`. */
  readonly responses: Array<string>
  /** The body of each request. */
  readonly bodies: Array<string>
  /** The `Authorization` of each request. */
  readonly authorizations: Array<string>
}

export interface StrictServers {
  readonly endpoint: TokenEndpoint
  readonly api: Api
  readonly revokeAll: () => void
}

/** Throws an error with the reason if a proof is wrong. */
type Check = (request: IncomingMessage, url: string, token?: string) => Promise<string>

class NonceWanted extends Error {}

const checking = (): {
  readonly checks: Checks
  readonly check: Check
  readonly nonce: () => string | undefined
} => {
  const nonces = new Set<string>()
  const seen = new Set<string>()
  const checks: Checks = {
    mode: "none",
    problems: [],
    proofs: [],
    challenges: 0,
    rotate: () => nonces.clear()
  }
  const nonce = () => {
    if (checks.mode === "none") return undefined
    const [current] = nonces
    if (checks.mode === "stable" && current !== undefined) return current
    const created = randomUUID()
    nonces.add(created)
    return created
  }
  const check: Check = async (request, url, token) => {
    const proof = request.headers["dpop"]
    if (typeof proof !== "string") throw new Error("the proof is missing")
    checks.proofs.push(proof)
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      typ: "dpop+jwt",
      algorithms: ["ES256"],
      requiredClaims: ["jti", "htm", "htu", "iat"]
    })
    const { ath, htm, htu, iat = 0, jti = "" } = payload
    const { jwk } = protectedHeader
    if (jwk === undefined || "d" in jwk) throw new Error("jwk is not a public key")
    if (htm !== request.method) throw new Error(`htm is ${String(htm)}`)
    if (htu !== url) throw new Error(`htu is ${String(htu)}`)
    if (Math.abs(iat - Date.now() / 1000) > window) {
      throw new Error("iat is outside the window")
    }
    if (seen.has(jti)) throw new Error("jti was seen before")
    seen.add(jti)
    const expected = token === undefined
      ? undefined
      : createHash("sha256").update(token).digest("base64url")
    if (ath !== expected) throw new Error("ath is wrong")
    if (checks.mode !== "none") {
      const isKnown = typeof payload["nonce"] === "string" && nonces.has(payload["nonce"])
      if (!isKnown) throw new NonceWanted("the nonce is unknown")
      if (checks.mode === "single") nonces.delete(String(payload["nonce"]))
    }
    return calculateJwkThumbprint(jwk)
  }
  return { checks, check, nonce }
}

const read = async (request: IncomingMessage) => {
  let body = ""
  for await (const chunk of request) body += String(chunk)
  return body
}

/** Responds to each request, and with 500 if that fails. */
const listener = (
  respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>
): RequestListener =>
(request, response) => {
  respond(request, response).catch((error: unknown) =>
    response.writeHead(500).end(String(error))
  )
}

/** Returns the code of the error of a check, and counts it. */
const codeOf = (checks: Checks, error: unknown) => {
  if (error instanceof NonceWanted) {
    checks.challenges++
    return "use_dpop_nonce"
  }
  checks.problems.push(String(error))
  return "invalid_dpop_proof"
}

/** Starts both servers. The API redirects `/moved` to `/orders`. */
export const start: Effect.Effect<StrictServers, never, Scope.Scope> = Effect.gen(function*() {
  const otherKeys: Array<string> = []
  const issued = new Map<string, IssuedToken>()

  const tokens = checking()
  const endpointBodies: Array<URLSearchParams> = []
  const endpointServer = createServer(listener(async (request, response) => {
    const fields = new URLSearchParams(await read(request))
    endpointBodies.push(fields)
    const send = (status: number, body: object) => {
      const nonce = tokens.nonce()
      if (nonce !== undefined) response.setHeader("DPoP-Nonce", nonce)
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(body))
    }
    try {
      const thumbprint = await tokens.check(request, `${endpoint.url}${request.url ?? ""}`)
      const token = `token-${issued.size + 1}-${randomUUID()}`
      issued.set(token, {
        thumbprint,
        expiresAt: Date.now() + endpoint.life * 1000,
        isRevoked: false
      })
      send(200, { access_token: token, token_type: "DPoP", expires_in: endpoint.life })
    } catch (error) {
      send(400, { error: codeOf(tokens.checks, error) })
    }
  }))
  const endpoint: TokenEndpoint = Object.assign(tokens.checks, {
    url: (yield* listen(endpointServer)).url,
    life: 3600,
    bodies: endpointBodies,
    issued
  })

  const calls = checking()
  const responses: Array<string> = []
  const apiBodies: Array<string> = []
  const authorizations: Array<string> = []
  const apiServer = createServer(listener(async (request, response) => {
    apiBodies.push(await read(request))
    const { authorization = "", host = "" } = request.headers
    authorizations.push(authorization)
    const { pathname } = new URL(request.url ?? "", `http://${host}`)
    const send = (status: number, challenge?: string) => {
      const nonce = calls.nonce()
      if (nonce !== undefined) response.setHeader("DPoP-Nonce", nonce)
      if (challenge !== undefined) response.setHeader("WWW-Authenticate", challenge)
      responses.push(`${status} ${request.method} ${pathname}`)
      response.writeHead(status, { "content-type": "application/json" }).end(
        `{"status":${status}}`
      )
    }
    const [, token = ""] = /^DPoP (\S+)$/.exec(authorization) ?? []
    try {
      const thumbprint = await calls.check(request, `${api.url}${pathname}`, token)
      const found = issued.get(token)
      const isUsable = found !== undefined && !found.isRevoked && found.expiresAt > Date.now()
      const isOfAnotherKey = found !== undefined && found.thumbprint !== thumbprint
      if (isOfAnotherKey) otherKeys.push(pathname)
      if (!isUsable || isOfAnotherKey) {
        send(401, `DPoP error="invalid_token", algs="ES256"`)
        return
      }
      if (pathname === "/moved") response.setHeader("Location", `${api.url}/orders?from=moved`)
      send(pathname === "/moved" ? 307 : 200)
    } catch (error) {
      send(401, `DPoP error="${codeOf(calls.checks, error)}", algs="ES256"`)
    }
  }))
  const api: Api = Object.assign(calls.checks, {
    url: (yield* listen(apiServer)).url,
    responses,
    bodies: apiBodies,
    authorizations,
    otherKeys
  })

  return {
    endpoint,
    api,
    revokeAll: () => {
      for (const token of issued.values()) token.isRevoked = true
    }
  }
})

/** The options of a client of both servers. */
export const optionsFor = ({ api, endpoint }: StrictServers) => ({
  authUrl: endpoint.url,
  apiUrl: api.url,
  clientId: "demo-client"
})
