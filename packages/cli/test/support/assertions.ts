/** Signed assertions of a client (RFC 7523), made when a test runs. */
import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from "node:crypto"

/** A key pair in PEM. */
export const newKeys = () =>
  generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" }
  })

/** An assertion of this client for this endpoint, which expires in so many seconds. */
export const signAssertion = (
  clientId: string,
  endpoint: string,
  privateKey: string,
  secondsLeft = 60
): string => {
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: endpoint,
    exp: Math.floor(Date.now() / 1000) + secondsLeft,
    jti: randomUUID()
  }
  const parts = [{ alg: "ES256" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url")
  )
  const key = createPrivateKey(privateKey)
  const signature = sign("sha256", Buffer.from(parts.join(".")), {
    key,
    dsaEncoding: "ieee-p1363"
  })
  return [...parts, signature.toString("base64url")].join(".")
}
