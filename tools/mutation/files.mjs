/**
 * The files to mutate, each with the tests that guard it, quick ones first. They run hundreds of times, so tests that
 * start a process or wait for the wall clock are left out. A mutant that only such a test would kill has survived.
 */
const provider = [
  "acquisition",
  "caching",
  "clocks",
  "rejection",
  "renewal",
  "failure",
  "inFlight",
  "metrics",
  "timeLimits"
]
  .map((name) => `provider/${name}`).join(" ")
const sharing = ["sharedToken", "lease", "brokenStore", "sealing", "repeatedToken"]
  .map((name) => `sharing/${name}`).join(" ")

/** The files of a package with the same tests, by names with a space between them. */
const parts = {
  core: {
    "AccessTokenError internal/advice internal/withMessage": "AccessTokenError",
    "AccessTokenMetrics": "provider/metrics",
    "AccessToken": "AccessToken",
    "ClientCredentials internal/credentials":
      "endpoint/ClientCredentials endpoint/TokenRequest endpoint/withoutSecret",
    "TokenRequest": "endpoint/TokenRequest endpoint/failures endpoint/withoutSecret",
    "TokenResponse": "endpoint/TokenResponse endpoint/otherServers endpoint/withoutSecret",
    "TokenSource": "StoreAuth",
    "TokenEndpoint": "endpoint/TokenRequest endpoint/retries StoreAuth",
    "AuthorizedHttpClient":
      "client/AuthorizedHttpClient client/recovery StoreAuth leaks/hiddenHeader",
    "TokenStore TokenStoreContract": "sharing/TokenStore",
    "SharedTokenSource internal/sharing/storedToken": sharing,
    "AccessTokenProvider": provider,
    "StoreAuth": "StoreAuth",
    "internal/baseUrl": "baseUrl endpoint/TokenRequest",
    "internal/boundedBody": "boundedBody",
    "internal/waitAtMost": "boundedBody endpoint/retries provider/timeLimits",
    "internal/extra": "endpoint/otherServers sharing/extra",
    "internal/options": "options",
    "internal/userAgent": "client/headers",
    "internal/manualRedirect": "endpoint/retries",
    "internal/backoff": "provider/failure endpoint/retries",
    "internal/lifetime":
      "provider/tokenPolicy AccessToken endpoint/TokenResponse endpoint/TokenRequest StoreAuth",
    "internal/provider/tokenPolicy": "provider/tokenPolicy provider/failure",
    "internal/repeatedToken": "provider/tokenPolicy provider/renewal sharing/repeatedToken",
    "internal/httpErrors": "leaks/hiddenHeader client/AuthorizedHttpClient boundedBody",
    "internal/client/attempt":
      "client/AuthorizedHttpClient client/recovery leaks/hiddenHeader StoreAuth",
    "internal/client/hiddenHeader": "leaks/hiddenHeader client/recovery",
    "internal/client/trustedOrigins": "client/AuthorizedHttpClient StoreAuth",
    "internal/endpoint/exchange": "endpoint/retries endpoint/TokenRequest telemetry",
    "internal/endpoint/dialects internal/endpoint/failure internal/endpoint/retryAfter":
      "endpoint/failures endpoint/otherServers endpoint/suspects",
    "internal/endpoint/limits": "endpoint/retries endpoint/failures",
    "internal/endpoint/sanitise internal/endpoint/sentRequest": "endpoint/failures",
    "internal/provider/driver": `${provider} telemetry`,
    "internal/provider/heldToken": `${provider} sharing/repeatedToken`,
    "internal/instant": "provider/clocks sharing/frozenProcess",
    "internal/provider/measure": "provider/metrics provider/caching",
    "internal/provider/rejectionBudget": "provider/rejection",
    "internal/provider/tokenState": `provider/tokenPolicy ${provider}`,
    "internal/sharing/reliableStore": "sharing/brokenStore sharing/lease",
    "internal/sharing/seal": "sharing/sealing"
  },
  "platform-node": {
    "ClientAssertion": "ClientAssertion",
    "FileTokenStore internal/expiringFiles internal/privateFolder": "FileTokenStore",
    "NodeHttp": "NodeHttp",
    "internal/dispatcher": "NodeHttp proxy",
    "internal/proxy": "proxy NodeHttp",
    "internal/tls": "NodeHttp"
  },
  redis: {
    "RedisTokenStore internal/reason": "RedisTokenStore",
    "internal/connection": "connection",
    "internal/servers": "url"
  },
  sql: {
    "SqlTokenStore internal/lazyStore internal/reason": "SqlTokenStore",
    "internal/retry internal/statements internal/store": "SqlTokenStore"
  },
  dpop: {
    "Dpop internal/signingKey": "proofs",
    "internal/proofs": "proofs servers"
  }
}

export const files = Object.entries(parts).flatMap(([name, modules]) =>
  Object.entries(modules).flatMap(([paths, tests]) =>
    paths.split(" ").map((path) => ({
      path: `packages/${name}/src/${path}.ts`,
      tests: tests.split(" ").map((test) => `packages/${name}/test/${test}.test.ts`)
    }))
  )
)

/**
 * Tests that are left out, by words of their names. Together they take longer than all others, which must find the same
 * mutants. Words that match no test leave none out.
 */
export const slow = new RegExp([
  "callers at any moment",
  "moment by moment",
  "ten minutes",
  "jumps during the acquisition",
  "10 000 concurrent first callers",
  "accepts no other character",
  "byte for byte",
  "never throws",
  "fifty members",
  "is stopped for 7 s",
  "wherever the fiber yields",
  "about as many requests as one process",
  "a whole fleet of providers rejects",
  "another process writes for",
  "that nobody waits for any more",
  "(at|just before) the endpoint's deadline",
  "no description contains"
].join("|"))

/** Why no test finds a survivor, by the first words of its line. */
export const explanations = {
  ": []": "a text among the places has none of the names",
  "const json = Option": "the text instead of a missing body is not JSON either",
  "now.wall < since.wall - lifetime.clock":
    "at exactly the tolerance, a token may count as either",
  ".replace(/\\.?": "a description has no space at its end",
  "HttpClientRequest.post(\"\")": "the endpoint sets the URL",
  "/insufficient_scope|": "the text instead of a missing header does not match either",
  "\"@store-api/core/AuthorizedHttpClient": "a key only has to be unique",
  "Effect.orElseSucceed(() => true)":
    "a test of a failed extension notices it, and is left out here",
  "Effect.try(() => Fs.readFileSync": "no file of that name exists either",
  "HttpClientError.isHttpClientError(error) &&":
    "a client that only sends fails with a response because of its status alone",
  "error._tag === \"TokenRefusedError\" &&":
    "no other error has one of these reasons or a status",
  "error._tag === \"TokenRequestError\" ||": "no other error has one of these reasons",
  "const codes = causes": "the text instead of a missing code does not match either",
  "const texts = causes": "the text instead of a missing message does not match either",
  "const works = { isOut: false }": "a missing isOut counts as false",
  "encode: (value) => value": "the library only decodes a response",
  "export class AccessToken ": "the identifier of the schema is not part of the API",
  "extends Context.Tag(": "a key only has to be unique",
  "Math.min(Math.max(0": "a duration of Effect 3 is never negative",
  "const { date =": "the text instead of a missing header is neither a date nor a number",
  "const [, scheme": "without a scheme, no URL can be read",
  "/(^|,)\\s*bearer": "the text instead of a quoted one does not name the scheme",
  "const isOfApi": "the text instead of a missing challenge does not name the scheme",
  "const http1 =": "the default of undici 7; the tests run with undici 8 too, where it is not",
  "const homeFolder": "matters only for a user without an entry in the user database",
  "if (found === null)": "the next line fails with the same error",
  "Predicate.isReadonlyRecord(error)":
    "a string in the chain of causes has neither a code nor a message",
  "scope: Option.getOrElse": "the default of the schema is the same",
  "subtle.deriveKey(": "a key that can be exported encrypts the same"
}
