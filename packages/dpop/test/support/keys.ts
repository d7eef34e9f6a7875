/** Private keys for tests, made when a test runs. */
import { createPublicKey, generateKeyPairSync } from "node:crypto"
import type { Emulator } from "@store-api/emulator"
import { Redacted } from "effect"

/** A private key in PEM (PKCS #8). */
export const pemOf = (curve = "P-256"): string =>
  generateKeyPairSync("ec", { namedCurve: curve }).privateKey.export({
    type: "pkcs8",
    format: "pem"
  }).toString()

export const newKey = (): Redacted.Redacted => Redacted.make(pemOf())

/** A client of the emulator, and the private key that signs its assertions. */
export const clientWithKey = () => {
  const privateKey = pemOf()
  const publicKey = createPublicKey(privateKey).export({ type: "spki", format: "pem" })
  const client: NonNullable<Emulator.Options["clients"]>[number] = {
    clientId: "key-client",
    clientSecret: Redacted.make("an-invented-secret"),
    publicKey: publicKey.toString()
  }
  return { client, privateKey }
}
