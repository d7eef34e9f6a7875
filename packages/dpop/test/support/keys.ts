/** Private keys for tests, made when a test runs. */
import { generateKeyPairSync } from "node:crypto"
import { Redacted } from "effect"

/** A private key in PEM (PKCS #8). */
export const pemOf = (curve = "P-256"): string =>
  generateKeyPairSync("ec", { namedCurve: curve }).privateKey.export({
    type: "pkcs8",
    format: "pem"
  }).toString()

export const newKey = (): Redacted.Redacted => Redacted.make(pemOf())
