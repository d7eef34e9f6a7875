/** What the protected API does. */
import * as Fault from "../../Fault.js"
import { alike, overTls, scenario } from "./scenario.js"

const api = { on: "api" } as const
const always = { ...api, times: Infinity }
const challenge = (more = "") => ({ headers: { "WWW-Authenticate": `Bearer realm="store-api"${more}` } })
const invalid = challenge(`, error="invalid_token"`)

export const calls = {
  "api/401-once": scenario(
    "one new token, one repeat if the body can be sent again, the caller has the second answer",
    Fault.status(401, { ...api, ...invalid })
  ),
  "api/401-always": scenario(
    "two requests and one new token, then the 401 is the caller's; a flood of calls: one token request a cooldown",
    Fault.status(401, { ...always, ...invalid })
  ),
  "api/401-hundred-at-once": scenario(
    "one new token for all of them",
    Fault.revoke(api)
  ),
  ...alike("api/", "one request, no new token", {
    "missing-scope": Fault.status(401, { ...always, ...challenge(`, error="insufficient_scope"`) }),
    "missing-product": Fault.status(401, {
      ...always,
      ...challenge(
        `, error="invalid_token", error_description="oauth.v2.InvalidApiKeyForGivenResource: NoApiProductMatch"`
      )
    }),
    "403": Fault.status(403, { ...always, body: `{"message":"no entitlement"}` })
  }),
  ...alike("api/redirect-", "the token does not travel", {
    "301": Fault.redirect(301, "elsewhere", api),
    "302": Fault.redirect(302, "elsewhere", api),
    "303": Fault.redirect(303, "elsewhere", api),
    "307": Fault.redirect(307, "elsewhere", api),
    "308": Fault.redirect(308, "elsewhere", api)
  }),
  "api/redirect-to-http": overTls("the token does not travel", Fault.redirect(302, "elsewhere", api)),
  "api/pointed-elsewhere": scenario("UntrustedOriginError, nothing is sent", []),
  "api/only-literal-bearer": scenario(
    "the literal Bearer, whatever token_type says",
    Fault.fields({ token_type: "bearer" })
  )
}
