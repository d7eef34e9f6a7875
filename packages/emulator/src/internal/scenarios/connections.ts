/** The token endpoint answers badly or not at all: connections, silence, floods, TLS. */
import * as Fault from "../../Fault.js"
import { alike, overTls, scenario } from "./scenario.js"

const always = { times: Infinity }
const transportError = "TokenRequestError (Transport) after several attempts"
const silent = "TokenRequestError (Timeout) after several attempts"
const untrusted = "TokenRequestError (Certificate) after one attempt"
const tooLarge = "TokenRequestError (TooLarge) after one attempt"
const refused = "TokenRefusedError (InvalidRequest) after one request"

const hundredMegabytes = 100 * 1024 * 1024
const refusal = { status: 400 }

export const transport = alike("token/", transportError, {
  "reset-on-accept": Fault.reset("connection", always),
  "reset-before-headers": Fault.reset("answer", always),
  "reset-in-headers": Fault.reset("headers", always),
  "reset-in-body": Fault.reset("body", always),
  "close-on-accept": Fault.close("connection", always),
  "close-before-headers": Fault.close("answer", always),
  "close-in-headers": Fault.close("headers", always),
  "close-in-body": Fault.close("body", always),
  "not-http": Fault.notHttp(always),
  "bad-chunks": Fault.badChunks(always),
  "contradicting-lengths": Fault.contradictingLengths(always),
  "huge-headers": Fault.hugeHeaders(always)
})

export const silence = alike("token/", silent, {
  "silence-on-accept": Fault.silence("connection", always),
  "silence": Fault.hang(always),
  "silence-in-headers": Fault.silence("headers", always),
  "silence-in-body": Fault.silence("body", always),
  "drip": Fault.drip("50 millis", always)
})

export const silenceInError = alike(
  "token/",
  "TokenRefusedError (Unavailable) or TokenRequestError (Timeout) after several attempts",
  { "drip-in-error": Fault.drip("50 millis", { ...always, status: 503 }) }
)

export const floods = {
  ...alike("token/", tooLarge, {
    "flood-100-mb": Fault.flood(hundredMegabytes),
    "flood-endless": Fault.flood(Infinity),
    "bomb": Fault.bomb()
  }),
  ...alike("token/", refused, {
    "flood-100-mb-in-error": Fault.flood(hundredMegabytes, refusal),
    "flood-endless-in-error": Fault.flood(Infinity, refusal),
    "bomb-in-error": Fault.bomb(100, refusal)
  })
}

export const recoveries = {
  "token/fails-then-works": scenario("a token after 4 requests", [
    Fault.status(503),
    Fault.reset("body"),
    Fault.status(500)
  ]),
  "token/uneven-delays": scenario("a token after 3 requests", [
    Fault.status(503, { delay: "170 millis" }),
    Fault.status(500, { delay: "20 millis" }),
    Fault.delay("230 millis")
  ]),
  "token/stale-connection": scenario("a token after several requests", [Fault.status(503), Fault.stale()])
}

export const tls = {
  "token/tls": overTls("a token after one request", []),
  "token/tls-self-signed": overTls(untrusted, Fault.tls("SelfSigned", always)),
  "token/tls-expired": overTls(untrusted, Fault.tls("Expired", always)),
  "token/tls-wrong-host": overTls(untrusted, Fault.tls("WrongHost", always)),
  "token/tls-1.1-only": overTls(transportError, Fault.tls("Tls1.1", always)),
  "token/tls-unfinished-handshake": overTls(silent, Fault.unfinishedHandshake(always))
}
