/** The token endpoint says no, for good or for now. */
import * as Fault from "../../Fault.js"
import { alike, scenario } from "./scenario.js"

const html = { headers: { "Content-Type": "text/html" }, body: "<html><body><h1>No</h1></body></html>" }
const rfc = (error: string) => ({ body: JSON.stringify({ error, error_description: "A description" }) })
const gateway = { body: `{"fault":{"faultstring":"No","detail":{"errorcode":"oauth.v2.Invented"}}}` }
const json = { body: `{"errors":[{"errorCode":"Invented","message":"Out of order"}]}` }

const refused = (reason: string) => `TokenRefusedError (${reason}) after one request`

const answers = <const Status extends number>(status: Status, expected: string, error: string) =>
  alike(`token/${status}-`, expected, {
    "rfc": Fault.status(status, rfc(error)),
    "gateway": Fault.status(status, gateway),
    "html": Fault.status(status, html),
    "nothing": Fault.status(status)
  })

export const refusals = {
  ...answers(400, refused("InvalidRequest"), "invalid_request"),
  ...answers(401, refused("InvalidClient"), "invalid_client"),
  ...answers(403, refused("Other"), "access_denied"),
  ...alike("token/", refused("Other"), {
    "404": Fault.status(404, html),
    "405": Fault.status(405),
    "413": Fault.status(413)
  }),
  ...alike("token/", refused("InvalidRequest"), {
    "echo": Fault.echo(400),
    "control-characters": Fault.status(400, {
      body: JSON.stringify({
        error: "invalid_request\u0007",
        error_description: "line\r\nbreak \u001b[31mred\u001b[0m \u202eturned \u0000 nul"
      })
    })
  })
}

const outages = <const Status extends number>(status: Status) =>
  alike(`token/${status}-`, "TokenRefusedError (Unavailable) after 6 requests", {
    "json": Fault.status(status, { ...json, times: Infinity }),
    "html": Fault.status(status, { ...html, times: Infinity }),
    "nothing": Fault.status(status, { times: Infinity })
  })

export const unavailable = {
  ...outages(500),
  ...outages(502),
  ...outages(503),
  ...outages(504),
  ...outages(529),
  ...outages(599)
}

/** Retried by 503 in any case, by 429 only when `Retry-After` says when. */
const later = <const Status extends number>(status: Status, reason: string, withoutMoment: string) => {
  const header = (...values: ReadonlyArray<string>) => Fault.status(status, { headers: { "Retry-After": values } })
  return {
    ...alike(`token/${status}-retry-after-`, "a token after 2 requests", {
      "seconds": header("1"),
      "date": Fault.retryDate(status, "2 seconds"),
      "zero": header("0"),
      "past": header("Sun, 06 Nov 1994 08:49:37 GMT")
    }),
    ...alike(`token/${status}-retry-after-`, withoutMoment, {
      "negative": header("-5"),
      "fraction": header("0.5"),
      "junk": header("soon")
    }),
    ...alike(`token/${status}-retry-after-`, "a token after 2 requests", { "twice": header("1", "2") }),
    ...alike(`token/${status}-`, withoutMoment, { "without-retry-after": Fault.status(status) }),
    ...alike(`token/${status}-retry-after-`, refused(reason), { "year": header("31536000") })
  }
}

export const retryAfter = {
  ...later(429, "RateLimited", refused("RateLimited")),
  ...later(503, "Unavailable", "a token after 2 requests"),
  "token/429-always": scenario(refused("RateLimited"), Fault.status(429, { times: Infinity }))
}
