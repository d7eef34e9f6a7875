/**
 * oidc-provider with clients that have no shared secret, and a resource that checks what its tokens are bound to: a key
 * (RFC 9449) or a certificate (RFC 8705). Both speak TLS, with HTTP/1.1 and HTTP/2.
 */
import {
  createHash,
  generateKeyPairSync,
  randomBytes,
  randomUUID,
  X509Certificate
} from "node:crypto"
import type { IncomingMessage } from "node:http"
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse
} from "node:http2"
import { type PeerCertificate, TLSSocket } from "node:tls"
import { selfSigned } from "@store-api/testing/certificates"
import { type Identity, listen } from "@store-api/testing/loopback"
import { Effect, type Scope } from "effect"
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify, SignJWT } from "jose"
import Provider from "oidc-provider"

export const clientId = "interop-client"

/** How the client authenticates. */
export type Method = "private_key_jwt" | "tls_client_auth" | "client_secret_post"

export interface Options {
  readonly method: Method
  /** The lifetime of tokens, in seconds. */
  readonly life: number
  /** Whether both servers want nonces. Only proofs contain one. */
  readonly wantsNonces?: boolean
  /** Whether the resource accepts a nonce only once. The nonces of oidc-provider are always valid for minutes. */
  readonly isNonceSingle?: boolean
  /** Whether an assertion may be sent again, as some servers accept the token of a workload until it expires. */
  readonly acceptsReplay?: boolean
}

export interface Running {
  readonly authUrl: string
  readonly apiUrl: string
  /** The identity of both servers, and that of the client. */
  readonly server: Identity
  readonly client: Identity
  readonly secret: string
  /** Signs an assertion with the client's key, or with another one. */
  readonly assertion: (key?: "other") => Effect.Effect<string>
  /** The fields of each token request, and the status of each response of both servers. */
  readonly bodies: Array<URLSearchParams>
  readonly tokenStatuses: Array<number>
  readonly apiStatuses: Array<number>
  /** The version of HTTP of each request to the API. */
  readonly versions: Array<string>
  /** Makes all nonces of both servers stale. */
  readonly rotateNonces: () => void
  readonly revoke: (token: string) => Effect.Effect<void>
}

type Request = IncomingMessage | Http2ServerRequest

const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" })

const thumbprintOf = (certificate: Buffer) =>
  createHash("sha256").update(certificate).digest("base64url")

/** The socket of a request, also if it is one of several requests over HTTP/2. */
const tlsSocketOf = ({ socket }: Request): TLSSocket => {
  if (socket instanceof TLSSocket) return socket
  throw new Error("the request came without TLS")
}

/** The certificate that the client sent over this connection. */
const certificateOf = (request: Request): X509Certificate | undefined => {
  // Without a certificate, Node returns an empty object.
  const { raw } = tlsSocketOf(request).getPeerCertificate() as Partial<PeerCertificate>
  return raw === undefined ? undefined : new X509Certificate(raw)
}

const listenTls = (
  { cert, key }: Identity,
  ca: string,
  respond: (request: Http2ServerRequest, response: Http2ServerResponse) => void
) => {
  const tls = { cert, key, ca, requestCert: true, rejectUnauthorized: false }
  const server = createSecureServer({ ...tls, allowHTTP1: true }, respond)
  server.on("session", (session) => session.on("error", () => undefined))
  return listen(server, { host: "localhost", protocol: "https" })
}

export const start = (
  { acceptsReplay = false, isNonceSingle = false, life, method, wantsNonces = false }: Options
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* selfSigned()
    const client = yield* selfSigned("client.example")
    const { privateKey, publicKey } = newKey()
    const other = newKey().privateKey
    const secret = randomUUID()
    const bodies: Array<URLSearchParams> = []
    const tokenStatuses: Array<number> = []
    const apiStatuses: Array<number> = []
    const versions: Array<string> = []

    let handle: ReturnType<Provider["callback"]> | undefined
    const { url } = yield* listenTls(server, client.cert, (request, response) => {
      response.on("finish", () => {
        if (request.url === "/token") tokenStatuses.push(response.statusCode)
      })
      void handle?.(request, response)
    })

    /** Another one knows other nonces. All of them have the same tokens. */
    const newProvider = () => {
      const provider = new Provider(url, {
        clients: [
          {
            client_id: clientId,
            client_secret: secret,
            grant_types: ["client_credentials"],
            redirect_uris: [],
            response_types: [],
            id_token_signed_response_alg: "ES256",
            token_endpoint_auth_method: method,
            ...(method === "private_key_jwt" && {
              token_endpoint_auth_signing_alg: "ES256",
              jwks: { keys: [publicKey.export({ format: "jwk" })] }
            }),
            ...(method === "tls_client_auth" && {
              tls_client_auth_san_dns: "client.example",
              tls_client_certificate_bound_access_tokens: true
            })
          }
        ],
        clientAuthMethods: ["client_secret_post", "private_key_jwt", "tls_client_auth"],
        ttl: { ClientCredentials: life },
        features: {
          clientCredentials: { enabled: true },
          devInteractions: { enabled: false },
          dPoP: {
            enabled: true,
            nonceSecret: randomBytes(32),
            requireNonce: () => wantsNonces
          },
          mTLS: {
            enabled: true,
            certificateBoundAccessTokens: true,
            tlsClientAuth: true,
            getCertificate: ({ req }) => certificateOf(req),
            certificateAuthorized: ({ req }) => tlsSocketOf(req).authorized,
            certificateSubjectMatches: ({ req }, _, expected) =>
              certificateOf(req)?.subjectAltName === `DNS:${expected}`
          }
        },
        jwks: { keys: [newKey().privateKey.export({ format: "jwk" })] }
      })
      if (acceptsReplay) provider.ReplayDetection.unique = () => Promise.resolve(true)
      provider.on("grant.success", ({ oidc }) => record(oidc.body))
      provider.on("grant.error", ({ oidc }) => record(oidc.body))
      handle = provider.callback()
      return provider
    }
    const record = (body: object | undefined) =>
      bodies.push(new URLSearchParams(Object.entries(body ?? {})))
    let provider = newProvider()

    const nonces = new Set<string>()
    const proofs = new Set<unknown>()
    /** Returns the error of the request's proof (RFC 9449 §4.3, §7.1), or `undefined`. */
    const refusalOf = async (request: Request, token: string, jkt: string) => {
      const { payload, protectedHeader } = await jwtVerify(
        String(request.headers["dpop"]),
        EmbeddedJWK,
        { typ: "dpop+jwt", algorithms: ["ES256"] }
      )
      const { pathname } = new URL(request.url ?? "", api.url)
      const isRight = payload["htm"] === request.method &&
        payload["htu"] === `${api.url}${pathname}` &&
        payload["ath"] === createHash("sha256").update(token).digest("base64url") &&
        Math.abs((payload.iat ?? 0) - Date.now() / 1000) <= 5 &&
        !proofs.has(payload.jti)
      if (!isRight) return "invalid_dpop_proof"
      proofs.add(payload.jti)
      const nonce = String(payload["nonce"])
      if (wantsNonces && !nonces.has(nonce)) return "use_dpop_nonce"
      if (isNonceSingle) nonces.delete(nonce)
      const thumbprint = await calculateJwkThumbprint(protectedHeader.jwk ?? {})
      return thumbprint === jkt ? undefined : "invalid_token"
    }
    const challengeFor = async (request: Request): Promise<string | undefined> => {
      const { authorization = "" } = request.headers
      const [, scheme, token = ""] = /^(Bearer|DPoP) (\S+)$/.exec(authorization) ?? []
      const found = await provider.ClientCredentials.find(token)
      if (found === undefined || found.isExpired) return `DPoP error="invalid_token"`
      const x5t = found["x5t#S256"]
      if (found.jkt !== undefined) {
        if (scheme !== "DPoP") return `DPoP error="invalid_token"`
        const refusal = await refusalOf(request, token, found.jkt).catch(() =>
          "invalid_dpop_proof"
        )
        if (refusal !== undefined) return `DPoP error="${refusal}"`
      }
      const sent = certificateOf(request)
      if (x5t !== undefined && x5t !== (sent && thumbprintOf(sent.raw))) {
        return `Bearer error="invalid_token"`
      }
      return undefined
    }
    const api: { readonly url: string } = yield* listenTls(
      server,
      client.cert,
      (request, response) => {
        request.resume()
        versions.push(request.httpVersion)
        void challengeFor(request).then((challenge) => {
          const status = challenge === undefined ? 200 : 401
          apiStatuses.push(status)
          if (wantsNonces) {
            const [current] = nonces
            const nonce = isNonceSingle || current === undefined ? randomUUID() : current
            nonces.add(nonce)
            response.setHeader("dpop-nonce", nonce)
          }
          if (challenge !== undefined) response.setHeader("www-authenticate", challenge)
          response.statusCode = status
          response.end("{}")
        })
      }
    )

    return {
      authUrl: url,
      apiUrl: api.url,
      server,
      client,
      secret,
      assertion: (key) =>
        Effect.promise(() =>
          new SignJWT({ jti: randomUUID() })
            .setProtectedHeader({ alg: "ES256" })
            .setIssuer(clientId).setSubject(clientId).setAudience(url)
            .setIssuedAt().setExpirationTime("5s")
            .sign(key === "other" ? other : privateKey)
        ),
      bodies,
      tokenStatuses,
      apiStatuses,
      versions,
      rotateNonces: () => {
        nonces.clear()
        provider = newProvider()
      },
      revoke: (token) =>
        Effect.promise(async () => {
          await (await provider.ClientCredentials.find(token))?.destroy()
        })
    }
  })
