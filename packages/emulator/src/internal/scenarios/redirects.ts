/** The token endpoint points somewhere else: credentials follow nobody. */
import * as Fault from "../../Fault.js"
import { alike, overTls } from "./scenario.js"

const refused = "TokenRequestError (Redirect) after one attempt"

export const redirects = {
  ...alike("token/redirect-", refused, {
    "301": Fault.redirect(301, "elsewhere"),
    "302": Fault.redirect(302, "elsewhere"),
    "303": Fault.redirect(303, "elsewhere"),
    "307": Fault.redirect(307, "elsewhere"),
    "308": Fault.redirect(308, "elsewhere"),
    "301-to-itself": Fault.redirect(301, "itself"),
    "302-to-itself": Fault.redirect(302, "itself"),
    "303-to-itself": Fault.redirect(303, "itself"),
    "307-to-itself": Fault.redirect(307, "itself"),
    "308-to-itself": Fault.redirect(308, "itself"),
    "loop": Fault.redirect(307, "loop", { times: Infinity }),
    "without-location": Fault.redirect(302, {}),
    "to-no-url": Fault.redirect(302, { location: "http://[" }),
    "to-another-scheme": Fault.redirect(302, { location: "ftp://store.example.invalid/token" }),
    "to-nothing": Fault.redirect(302, { location: "" }),
    "with-endless-body": Fault.flood(Infinity, { status: 302 })
  }),
  "token/redirect-302-to-http": overTls(refused, Fault.redirect(302, "elsewhere")),
  "token/redirect-307-to-http": overTls(refused, Fault.redirect(307, "elsewhere"))
}
