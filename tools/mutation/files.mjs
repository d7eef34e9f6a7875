/**
 * The files to mutate, each with the tests that guard it, quick ones first. They run hundreds of times, so tests that
 * start a process or wait for the wall clock are left out. A mutant that only such a test would kill has survived.
 */
const provider = ["caching", "clocks", "rejection", "renewal", "failure", "inFlight", "metrics", "timeLimits"]
  .map((name) => `provider/${name}`).join(" ")
const sharing = ["sharedToken", "lease", "brokenStore", "sealing", "repeatedToken"]
  .map((name) => `sharing/${name}`).join(" ")

/** The files of a package with the same tests, by names with a space between them. */
const parts = {
  core: {
    "AccessTokenError internal/described": "AccessTokenError",
    "AccessTokenMetrics": "provider/metrics",
    "AccessToken": "AccessToken",
    "ClientCredentials": "endpoint/ClientCredentials",
    "TokenRequest": "endpoint/TokenRequest endpoint/failures",
    "TokenResponse": "endpoint/TokenResponse",
    "TokenSource": "StoreAuth",
    "TokenEndpoint": "endpoint/retries StoreAuth",
    "AuthorizedHttpClient": "client/AuthorizedHttpClient client/recovery StoreAuth leaks/hiddenHeader",
    "TokenStore internal/monotonicMillis": "sharing/TokenStore",
    "SharedTokenSource internal/sharing/storedToken": sharing,
    "AccessTokenProvider": provider,
    "StoreAuth": "StoreAuth",
    "internal/baseUrl": "baseUrl endpoint/TokenRequest",
    "internal/boundedBody": "boundedBody",
    "internal/bounded": "boundedBody endpoint/retries provider/timeLimits",
    "internal/manualRedirect": "endpoint/retries",
    "internal/backoff": "provider/tokenPolicy",
    "internal/lifetime internal/provider/tokenPolicy": "provider/tokenPolicy AccessToken endpoint/TokenResponse",
    "internal/repeatedToken": "provider/tokenPolicy provider/renewal sharing/repeatedToken",
    "internal/httpErrors": "leaks/hiddenHeader client/AuthorizedHttpClient boundedBody",
    "internal/client/attempt": "client/AuthorizedHttpClient leaks/hiddenHeader StoreAuth",
    "internal/client/headerValue": "client/AuthorizedHttpClient",
    "internal/client/hiddenHeader": "leaks/hiddenHeader client/recovery",
    "internal/client/recovery": "client/AuthorizedHttpClient client/recovery",
    "internal/client/trustedOrigins": "client/AuthorizedHttpClient StoreAuth",
    "internal/endpoint/exchange": "endpoint/retries telemetry",
    "internal/endpoint/refusal internal/endpoint/retryAfter internal/endpoint/sanitise internal/endpoint/transportError":
      "endpoint/failures",
    "internal/provider/acquisitions": "provider/inFlight provider/timeLimits provider/caching telemetry",
    "internal/provider/cooldown": "provider/tokenPolicy provider/failure provider/timeLimits",
    "internal/provider/heldToken": `${provider} sharing/repeatedToken`,
    "internal/provider/instant": "provider/clocks",
    "internal/provider/measure": "provider/metrics provider/caching",
    "internal/provider/rejectionBudget": "provider/rejection",
    "internal/provider/tokenState": `provider/tokenPolicy ${provider}`,
    "internal/sharing/reliableStore": "sharing/brokenStore sharing/lease",
    "internal/sharing/seal": "sharing/sealing"
  },
  "platform-node": {
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
  ...["callers at any moment", "moment by moment", "ten minutes", "jumps during the acquisition", "under load"],
  ...["calls before and after its timers fire", "gets few requests in", "lifetimes of 1 s and less"],
  ...["10 000 concurrent first callers", "accepts all printable ASCII", "accepts no other character", "byte for byte"],
  ...["any options and number of failures", "never throws", "any value is an error", "is accepted if and only if"],
  ...["fifty members", "from six processes than from one", "across a fleet", "and other members keep waiting"],
  ...["(at|just before) the endpoint's deadline", "no description contains"]
].join("|"))
