/**
 * The files to mutate, each with the tests that guard it. These tests run hundreds of times, so tests that start a
 * process or wait for the wall clock are left out. A mutant that only such a test would kill counts as survived.
 */
const provider = ["caching", "clocks", "rejection", "renewal", "failure", "inFlight"]
  .concat("metrics", "timeLimits").map((name) => `provider/${name}`)
const sharing = ["sharedToken", "lease", "brokenStore", "sealing", "repeatedToken"]
  .map((name) => `sharing/${name}`)
const fileStore = ["FileTokenStore"]

/**
 * Tests that are left out, by words of their names. Together they take longer than all others, which must find the same
 * mutants. Words that match no test leave none out.
 */
export const slow = [
  "callers at any moment",
  "moment by moment",
  "ten minutes",
  "jumps during the acquisition",
  "under load",
  "calls before and after its timers fire",
  "gets few requests in",
  "lifetimes of 1 s and less",
  "10 000 concurrent first callers",
  "accepts all printable ASCII",
  "accepts no other character",
  "byte for byte",
  "any options and number of failures",
  "never throws",
  "any value is an error",
  "is accepted if and only if",
  "fifty members",
  "from six processes than from one",
  "across a fleet",
  "at the endpoint's deadline",
  "just before the endpoint's deadline",
  "and other members keep waiting",
  "no description contains"
]

/** Why no test finds a survivor, by the first words of its line. */
export const explanations = {
  "/^(rediss?)": "without a scheme, no URL can be read",
  "/insufficient_scope|": "the text in place of a missing header does not match either",
  "\"@store-api/core/AuthorizedHttpClient": "a key only has to be unique",
  "\"upgrade\"": "only a response of Effect 4 has it",
  "Effect.sync(() => to(host, user)": "a sentinel whose connection breaks later needs real servers, in a slower test",
  "Effect.try(() => Fs.readFileSync": "no file of that name exists either",
  "HttpClientError.isHttpClientError(error) &&":
    "a client that only sends fails with a response because of its status alone",
  "error._tag === \"TokenRefusedError\" &&": "no other error has one of these reasons or a status",
  "Math.abs(last.expiresAt": "a difference of exactly 2 seconds may count as either",
  "const works = { isOut: false }": "a missing isOut counts as false",
  "export class AccessToken ": "the identifier of the schema is not part of the API",
  "extends Context.Tag(": "a key only has to be unique",
  "for (let pause = firstPause": "one more look, exactly at the end, has the same result",
  "const { date =": "the text in place of a missing header is neither a date nor a number",
  "const [, scheme": "without a scheme, no URL can be read",
  "const [name =": "always present; only a URL of sentinels uses it",
  "/(^|,)\\s*bearer": "the text instead of a quoted one does not name the scheme",
  "const isOfApi": "the text instead of a missing challenge does not name the scheme",
  "const http1 =": "the default of undici 7; the tests run with undici 8 too, where it is not",
  "const homeFolder": "matters only for a user without an entry in the user database",
  "if (found === null)": "the next line fails with the same error",
  "if (named.length === 0)": "a shortcut: without it each request is examined, with the same result",
  "if (request.url.startsWith": "a shortcut: the lines below have the same result",
  "Predicate.isReadonlyRecord(error)": "a string in the chain of causes has neither a code nor a message",
  "scope: Option.getOrElse": "the default of the schema is the same",
  "subtle.deriveKey(": "a key that can be exported encrypts the same"
}

const modules = {
  core: {
    AccessTokenError: ["AccessTokenError"],
    AccessTokenMetrics: ["provider/metrics"],
    AccessToken: ["AccessToken"],
    ClientCredentials: ["endpoint/ClientCredentials"],
    TokenResponse: ["endpoint/TokenResponse"],
    TokenSource: ["StoreAuth"],
    TokenEndpoint: ["endpoint/retries", "StoreAuth"],
    AuthorizedHttpClient: ["AuthorizedHttpClient", "recovery"].map((name) => `client/${name}`)
      .concat("StoreAuth", "leaks/hiddenHeader"),
    TokenStore: ["sharing/TokenStore"],
    SharedTokenSource: sharing,
    AccessTokenProvider: provider,
    StoreAuth: ["StoreAuth"],
    "internal/baseUrl": ["baseUrl"],
    "internal/client/attempt": ["client/AuthorizedHttpClient", "leaks/hiddenHeader", "StoreAuth"],
    "internal/boundedBody": ["boundedBody"],
    "internal/bounded": ["boundedBody", "endpoint/retries", "provider/timeLimits"],
    "internal/provider/acquisitions": ["provider/inFlight", "provider/timeLimits", "provider/caching", "telemetry"],
    "internal/provider/cooldown": ["provider/tokenPolicy", "provider/failure", "provider/timeLimits"],
    "internal/provider/instant": ["provider/clocks"],
    "internal/provider/rejectionBudget": ["provider/rejection"],
    "internal/backoff": ["provider/tokenPolicy"],
    "internal/lifetime": ["provider/tokenPolicy", "AccessToken", "endpoint/TokenResponse"],
    "internal/repeatedToken": ["provider/tokenPolicy", "provider/renewal", "sharing/repeatedToken"],
    "internal/client/headerValue": ["client/AuthorizedHttpClient"],
    "internal/provider/heldToken": [...provider, "sharing/repeatedToken"],
    "internal/client/hiddenHeader": ["leaks/hiddenHeader", "client/recovery"],
    "internal/client/recovery": ["client/AuthorizedHttpClient", "client/recovery"],
    "internal/httpErrors": ["leaks/hiddenHeader", "client/AuthorizedHttpClient", "boundedBody"],
    "internal/manualRedirect": ["endpoint/retries"],
    "internal/provider/measure": ["provider/metrics", "provider/caching"],
    "internal/monotonicMillis": ["sharing/TokenStore"],
    "internal/described": ["AccessTokenError"],
    "internal/endpoint/exchange": ["endpoint/retries", "telemetry"],
    "internal/endpoint/refusal": ["endpoint/failures"],
    "internal/sharing/reliableStore": ["sharing/brokenStore", "sharing/lease"],
    "internal/endpoint/retryAfter": ["endpoint/failures"],
    "internal/endpoint/sanitise": ["endpoint/failures"],
    "internal/sharing/seal": ["sharing/sealing"],
    "internal/sharing/storedToken": sharing,
    "internal/provider/tokenPolicy": ["provider/tokenPolicy", "AccessToken", "endpoint/TokenResponse"],
    "internal/endpoint/tokenRequest": ["endpoint/ClientCredentials"],
    "internal/provider/tokenState": ["provider/tokenPolicy", ...provider],
    "internal/endpoint/transportError": ["endpoint/failures"],
    "internal/client/trustedOrigins": ["client/AuthorizedHttpClient", "StoreAuth"]
  },
  "platform-node": {
    FileTokenStore: fileStore,
    NodeHttp: ["NodeHttp"],
    "internal/dispatcher": ["NodeHttp", "proxy"],
    "internal/expiringFiles": fileStore,
    "internal/privateFolder": fileStore,
    "internal/proxy": ["proxy", "NodeHttp"],
    "internal/tls": ["NodeHttp"]
  },
  redis: {
    RedisTokenStore: ["RedisTokenStore"],
    "internal/connection": ["connection"],
    "internal/reason": ["RedisTokenStore"],
    "internal/servers": ["url"]
  }
}

export const files = Object.entries(modules).flatMap(([name, modules]) =>
  Object.entries(modules).map(([module, tests]) => ({
    path: `packages/${name}/src/${module}.ts`,
    tests: tests.map((test) => `packages/${name}/test/${test}.test.ts`)
  }))
)
