import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { AccessToken } from "../../AccessToken.js"
import { maxLife } from "../lifetime.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { as: "Option" })

/** The encoding of a token before it is sealed, in clear text. */
const Stored = Schema.parseJson(Schema.Struct({
  value: Schema.Redacted(Schema.String),
  scope: Schema.String,
  acquiredAt: Schema.DateTimeUtcFromNumber,
  expiresAt: Schema.DateTimeUtcFromNumber,
  applicationName: optional(Schema.String),
  developerEmail: optional(Schema.Redacted(Schema.String)),
  issuedAt: optional(Schema.String),
  clientId: optional(Schema.String)
}))

export const encode: (token: AccessToken) => string = Schema.encodeSync(Stored)

const decodeStored = Schema.decodeOption(Stored)

/**
 * Decodes a token of another machine. Returns `None` if the text is not a token, or if it has expired by the
 * local clock. If this clock is behind the other, the token counts as acquired now, and expires at most 60 minutes
 * from now. If this clock is ahead, the token expires early.
 */
export const decode = (text: string, now: number): Option.Option<AccessToken> =>
  decodeStored(text).pipe(
    Option.map((stored) =>
      new AccessToken({
        ...stored,
        acquiredAt: DateTime.min(stored.acquiredAt, DateTime.unsafeMake(now)),
        expiresAt: DateTime.min(stored.expiresAt, DateTime.unsafeMake(now + maxLife))
      })
    ),
    Option.filter(({ expiresAt }) => expiresAt.epochMillis > now)
  )
