/** Checks a JWT as a resource does: its signature with the issuer's published keys, its issuer and its times. */
import { createPublicKey, type JsonWebKey, type KeyObject, verify } from "node:crypto"
import { Clock, Effect, Option, Schema } from "effect"

const decodePart = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownOption(Schema.parseJson(schema))
  return (part: string) => decode(Buffer.from(part, "base64url").toString("utf8"))
}

const decodeHeader = decodePart(Schema.Struct({ alg: Schema.Literal("RS256"), kid: Schema.String }))

const decodePayload = decodePart(
  Schema.Struct({ iss: Schema.String, exp: Schema.Number, nbf: Schema.optional(Schema.Number) })
)

interface PublishedKeys {
  readonly keys: ReadonlyArray<JsonWebKey & { readonly kid?: string }>
}

const fetchKeys = (jwksUrl: string): Effect.Effect<ReadonlyMap<string, KeyObject>> =>
  Effect.promise(async (signal) => {
    const { keys } = await (await fetch(jwksUrl, { signal })).json() as PublishedKeys
    return new Map(keys.map((key) => [key.kid ?? "", createPublicKey({ key, format: "jwk" })]))
  })

/** Fetches the keys once, and returns a check that a token is valid and from this issuer. */
export const jwtVerifier = (
  jwksUrl: string,
  issuer: string
): Effect.Effect<(token: string) => Effect.Effect<boolean>> =>
  Effect.map(fetchKeys(jwksUrl), (keys) => (token) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const [header = "", payload = "", signature = "", ...rest] = token.split(".")
      return rest.length === 0 && Option.isSome(
        Option.gen(function*() {
          const { kid } = yield* decodeHeader(header)
          const key = yield* Option.fromNullable(keys.get(kid))
          const { exp, iss, nbf = 0 } = yield* decodePayload(payload)
          const signed = verify("sha256", Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, "base64url"))
          return yield* signed && iss === issuer && nbf * 1000 <= now && now < exp * 1000
            ? Option.some(token)
            : Option.none()
        })
      )
    }))
