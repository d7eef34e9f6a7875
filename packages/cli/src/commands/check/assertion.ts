/** When the assertion in a file expires. */
import * as ClientAssertion from "@store-api/platform-node/ClientAssertion"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { inWords } from "../../output.js"

/** The end of its validity in seconds (RFC 7519 §4.1.4). */
const Claims = Schema.parseJson(Schema.Struct({ exp: Schema.Number }))

/** Returns a sentence about an assertion that is no longer valid, and nothing about any other. */
export const explainAssertion = (path: string): Effect.Effect<string> =>
  Effect.gen(function*() {
    const assertion = yield* ClientAssertion.fromFile(path)()
    const [, payload = ""] = Redacted.value(assertion).split(".") // only its time is read
    const { exp } = yield* Effect.flatMap(
      Encoding.decodeBase64UrlString(payload),
      Schema.decode(Claims)
    )
    const millisAgo = (yield* Clock.currentTimeMillis) - exp * 1000
    if (millisAgo < 0) return ""
    const ago = inWords(millisAgo)
    return ` By this machine's clock, the assertion expired ${ago} ago: check what writes its file.`
  }).pipe(Effect.orElseSucceed(() => ""))
