/** Assertions that `jose` signs (RFC 7523 §2.2), a new one for each attempt. */
import { TokenRequest } from "@store-api/core"
import { Effect, Redacted } from "effect"
import { importPKCS8, SignJWT } from "jose"

/** Requests tokens from the emulator at the URL. */
export const signedAssertion = (
  privateKey: string,
  url: string
): TokenRequest.TokenRequest =>
  TokenRequest.clientAssertion(({ clientId }) =>
    Effect.promise(async () => {
      const key = await importPKCS8(privateKey, "ES256")
      const token = new SignJWT({}).setProtectedHeader({ alg: "ES256" })
        .setIssuer(clientId).setSubject(clientId).setAudience(`${url}/v1/oauth/accesstoken`)
        .setIssuedAt().setExpirationTime("1m").setJti(crypto.randomUUID())
      return Redacted.make(await token.sign(key))
    })
  )
