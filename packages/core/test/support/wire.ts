/** Invented credentials, and token responses with invented values. */
import { ClientCredentials } from "@store-api/core"
import { Effect, FastCheck as FC, Redacted } from "effect"

export const clientId = "invented-client"
export const clientSecret = "invented-secret-7f3a"

export const credentials = ClientCredentials.make({
  clientId,
  clientSecret: Redacted.make(clientSecret)
})

/** Credentials from values that are known to be valid. */
export const credentialsOf = (
  id: string,
  secret: string
): ClientCredentials.ClientCredentials =>
  Effect.runSync(ClientCredentials.make({ clientId: id, clientSecret: Redacted.make(secret) }))

/** The fields of the specification's token response. */
export const specificationFields = {
  access_token: "invented-token-0001",
  token_type: "bearer",
  expires_in: 3600,
  scope: "",
  application_name: "Invented Shop",
  "developer.email": "developer@shop.example",
  issued_at: "1767225600000",
  client_id: clientId
}

/** The specification's token response, with some fields replaced, or left out where `undefined`. */
export const tokenBody = (fields: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ ...specificationFields, ...fields })

/** The characters that a credential may contain: printable ASCII without the separator `&`. */
export const printable = Array.from(
  { length: 0x7f - 0x20 },
  (_, index) => String.fromCharCode(0x20 + index)
)
  .filter((character) => character !== "&")

export const sendable = FC.string({
  unit: FC.constantFrom(...printable),
  minLength: 1,
  maxLength: 60
})

/**
 * Any Unicode character. `FC.string({ unit: "binary" })` generates the same characters, but needs a second or two to
 * list them first.
 */
export const character = FC.integer({ min: 0, max: 0x10f7ff }).map(
  (index) => String.fromCodePoint(index < 0xd800 ? index : index + 0x800),
  (value) => {
    const point = String(value).codePointAt(0) ?? 0
    return point < 0xd800 ? point : point - 0x800
  }
)
