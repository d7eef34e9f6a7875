/**
 * Compares docs/explanation/comparison.md with the libraries, as they are installed for the benchmarks.
 */
import { readFileSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "./support/command.js"
import { codes, read, rows, sections } from "./support/pages.js"

const page = read("docs/explanation/comparison.md")
const all = sections(page)
const textOf = (heading: string) => all.find((section) => section.heading === heading)?.text ?? ""

const folder = (name: string) => realpathSync(join(root, "tools", "benchmarks", "node_modules", name))

/** The path of a dependency of openid-client. */
const beside = (name: string) => realpathSync(join(folder("openid-client"), "..", name))

const versionOf = (name: string) =>
  (JSON.parse(readFileSync(join(folder(name), "package.json"), "utf8")) as { readonly version: string }).version

const azure = join(folder("@azure/core-rest-pipeline"), "dist/esm")
const badgateway = join(folder("@badgateway/oauth2-client"), "dist")
const google = join(folder("google-auth-library"), "build/src/auth")
const simple = join(folder("simple-oauth2"), "lib")
const oauth4webapi = join(beside("oauth4webapi"), "build")

interface Evidence {
  /** The column and row of the page. */
  readonly of: readonly [library: string, row: string]
  readonly file: string
  /** The file contains each of these. */
  readonly has?: ReadonlyArray<string | RegExp>
  /** The file contains none of these. */
  readonly hasNot?: ReadonlyArray<string | RegExp>
}

const renewed = "renewed before expiry"
const failed = "after a failed renewal"
const without = "without a token, after a failure"
const unauthorized = "an API responds with 401"
const goes = "where the token may go"
const redirected = "redirect of the token request"
const retries = "retries of the token request"
const asText = "`expires_in` as a string"
const tokenType = "`token_type` `BearerToken`"
const inBody = "credentials in the body"
const log = "secrets in its output"
const margins = "margins of a short lifetime"
const shared = "shared between processes"

const evidence: ReadonlyArray<Evidence> = [
  {
    of: ["@azure/core-rest-pipeline", renewed],
    file: join(azure, "util/tokenCycler.js"),
    has: ["refreshWindowInMs: 1000 * 60 * 2", "forcedRefreshWindowInMs: 1000,"]
  },
  {
    of: ["@azure/core-rest-pipeline", margins],
    file: join(azure, "policies/bearerTokenAuthenticationPolicy.js"),
    has: ["createTokenCycler(credential /* , options */)"]
  },
  {
    of: ["@azure/core-rest-pipeline", failed],
    file: join(azure, "util/tokenCycler.js"),
    has: ["retryIntervalInMs: 3000", "if (Date.now() < refreshTimeout)"]
  },
  {
    of: ["@azure/core-rest-pipeline", without],
    file: join(azure, "util/tokenCycler.js"),
    has: ["token?.expiresOnTimestamp ?? Date.now()", "subsequent requests will start a"]
  },
  {
    of: ["@azure/core-rest-pipeline", "clock"],
    file: join(azure, "util/tokenCycler.js"),
    has: ["Date.now()"],
    hasNot: ["performance.now", "hrtime"]
  },
  {
    of: ["@azure/core-rest-pipeline", unauthorized],
    file: join(azure, "policies/bearerTokenAuthenticationPolicy.js"),
    has: ["getCaeChallengeClaims", "else if (callbacks.authorizeRequestOnChallenge)"]
  },
  {
    of: ["@azure/core-rest-pipeline", goes],
    file: join(azure, "policies/bearerTokenAuthenticationPolicy.js"),
    has: [`startsWith("https://")`]
  },
  {
    of: ["@azure/core-rest-pipeline", tokenType],
    file: join(azure, "policies/bearerTokenAuthenticationPolicy.js"),
    has: ["\"Authorization\", `Bearer ${accessToken.token}`"]
  },
  {
    of: ["@badgateway/oauth2-client", renewed],
    file: join(badgateway, "fetch-wrapper.js"),
    has: ["this.token.expiresAt > Date.now()", "!this.token.refreshToken"]
  },
  {
    of: ["@badgateway/oauth2-client", failed],
    file: join(badgateway, "fetch-wrapper.js"),
    has: [/catch \(err\) \{\s+if \(this\.options\.onError\) \{\s+this\.options\.onError\(err\);\s+\}\s+throw err;/]
  },
  {
    of: ["@badgateway/oauth2-client", without],
    file: join(badgateway, "fetch-wrapper.js"),
    has: ["this.activeRefresh = null;"],
    hasNot: [/backoff|delay/i]
  },
  {
    of: ["@badgateway/oauth2-client", "clock"],
    file: join(badgateway, "fetch-wrapper.js"),
    has: ["Date.now()"],
    hasNot: ["performance.now"]
  },
  {
    of: ["@badgateway/oauth2-client", unauthorized],
    file: join(badgateway, "fetch-wrapper.js"),
    has: [/response\.status === 401\) \{\s+const newToken = await this\.refreshToken\(\);/]
  },
  {
    of: ["@badgateway/oauth2-client", shared],
    file: join(badgateway, "fetch-wrapper.js"),
    has: ["options.getStoredToken", ".storeToken"]
  },
  {
    of: ["@badgateway/oauth2-client", goes],
    file: join(badgateway, "fetch-wrapper.js"),
    hasNot: ["https:", "origin"]
  },
  { of: ["@badgateway/oauth2-client", redirected], file: join(badgateway, "client.js"), hasNot: ["redirect:"] },
  { of: ["@badgateway/oauth2-client", retries], file: join(badgateway, "client.js"), hasNot: [/retry|timeout/i] },
  { of: ["@badgateway/oauth2-client", asText], file: join(badgateway, "client.js"), has: ["(expires_in * 1000)"] },
  {
    of: ["@badgateway/oauth2-client", tokenType],
    file: join(badgateway, "fetch-wrapper.js"),
    has: ["'Authorization', 'Bearer ' + accessToken"]
  },
  { of: ["@badgateway/oauth2-client", inBody], file: join(badgateway, "client.js"), has: ["new URLSearchParams()"] },
  {
    of: ["@badgateway/oauth2-client", log],
    file: join(badgateway, "client.js"),
    has: ["console.warn('Invalid OAuth2 Token Response: ', body)"]
  },
  {
    of: ["google-auth-library", renewed],
    file: join(google, "authclient.js"),
    has: ["DEFAULT_EAGER_REFRESH_THRESHOLD_MILLIS = 5 * 60 * 1000"]
  },
  {
    of: ["google-auth-library", margins],
    file: join(google, "authclient.js"),
    has: ["opts.eagerRefreshThresholdMillis"]
  },
  {
    of: ["google-auth-library", failed],
    file: join(google, "oauth2client.js"),
    has: ["const refreshedAccessToken = await this.processAndValidateRefreshHandler();"]
  },
  {
    of: ["google-auth-library", without],
    file: join(google, "oauth2client.js"),
    has: ["const shouldRefresh = !this.credentials.access_token || this.isTokenExpiring();"],
    hasNot: [/backoff/i]
  },
  {
    of: ["google-auth-library", "clock"],
    file: join(google, "oauth2client.js"),
    has: ["expiryDate <= new Date().getTime() + this.eagerRefreshThresholdMillis"]
  },
  {
    of: ["google-auth-library", unauthorized],
    file: join(google, "oauth2client.js"),
    has: [
      "statusCode === 401 || statusCode === 403",
      "(!this.credentials.expiry_date || this.forceRefreshOnFailure) &&\n                    this.refreshHandler"
    ]
  },
  {
    of: ["google-auth-library", goes],
    file: join(google, "oauth2client.js"),
    hasNot: ["trustedOrigin", "allowedOrigin"]
  },
  {
    of: ["google-auth-library", tokenType],
    file: join(google, "oauth2client.js"),
    has: ["authorization: thisCreds.token_type + ' ' + thisCreds.access_token"]
  },
  {
    of: ["simple-oauth2", renewed],
    file: join(simple, "access-token.js"),
    has: ["expired(expirationWindowSeconds = 0)", "Date.now()"]
  },
  {
    of: ["simple-oauth2", "clock"],
    file: join(simple, "access-token.js"),
    has: ["Date.now()"],
    hasNot: ["performance.now", "hrtime"]
  },
  {
    of: ["simple-oauth2", asText],
    file: join(simple, "access-token-parser.js"),
    has: ["Number.parseInt(expiresIn, 10)"]
  },
  {
    of: ["simple-oauth2", inBody],
    file: join(simple, "client/request-options.js"),
    has: ["querystring.stringify(parameters)"]
  },
  {
    of: ["simple-oauth2", log],
    file: join(simple, "client/client.js"),
    has: ["debug('Using request options: %j', options);"]
  },
  { of: ["simple-oauth2", retries], file: join(simple, "client/client.js"), hasNot: [/retry/i] },
  { of: ["openid-client", redirected], file: join(oauth4webapi, "index.js"), has: ["redirect: 'manual'"] },
  { of: ["openid-client", retries], file: join(oauth4webapi, "index.js"), hasNot: ["retryAfter", "Retry-After"] },
  { of: ["openid-client", asText], file: join(oauth4webapi, "index.js"), has: ["parseFloat(json.expires_in)"] },
  {
    of: ["openid-client", tokenType],
    file: join(oauth4webapi, "index.js"),
    has: ["json.token_type !== 'dpop' && json.token_type !== 'bearer'", "recognizedTokenTypes"]
  },
  {
    of: ["openid-client", inBody],
    file: join(oauth4webapi, "index.js"),
    has: ["body.set('client_secret', clientSecret)"]
  },
  { of: ["openid-client", log], file: join(oauth4webapi, "index.js"), hasNot: ["console."] }
]

const holds = (text: string) => (part: string | RegExp) =>
  typeof part === "string" ? text.includes(part) : part.test(text)

/** The differences between the page and the code that was read. */
const changed = (found: Evidence, text: string): ReadonlyArray<string> => [
  ...(found.has ?? []).filter((part) => !holds(text)(part)).map((part) => `${found.of.join(", ")}: no ${String(part)}`),
  ...(found.hasNot ?? []).filter(holds(text)).map((part) => `${found.of.join(", ")}: ${String(part)}`)
]

/** The word of the page for a count: none, some or all. */
const counted = (cell: string): string => {
  const [count = 0, of = 0] = [...cell.matchAll(/\d+(?: \d{3})*/g)].map(([digits]) =>
    Number(digits.replaceAll(" ", ""))
  )
  return count === 0 ? "none" : count === of ? "all" : "some"
}

describe("docs/explanation/comparison.md", () => {
  it("names the versions that are installed", () => {
    const named = rows(page.slice(0, page.indexOf("\n## "))).map((
      [name = "", version]
    ) => [codes(name)[0] ?? "", version])
    assert.lengthOf(named, 6)
    for (const [name = "", version] of named) assert.strictEqual(version, versionOf(name), name)
  })

  it.each(evidence)("$of: the line that we read still exists", (found) => {
    assert.deepStrictEqual(changed(found, readFileSync(found.file, "utf8")), [])
  })

  it("are reported if the code differs", () => {
    const found: Evidence = { of: ["x", "y"], file: "", has: ["four"], hasNot: [/two/] }
    assert.deepStrictEqual(changed(found, "two"), ["x, y: no four", "x, y: /two/"])
  })

  it("has a source line for each statement about a library, unless it is left to the user", () => {
    const known = new Set(evidence.map(({ of }) => of.join(", ")))
    for (const heading of ["Caching a token", "Acquiring and sending it"]) {
      const [head = ""] = textOf(heading).split("\n").filter((line) => line.startsWith("|"))
      const libraries = head.split("|").slice(3, -1).map((cell) => codes(cell)[0] ?? "")
      assert.lengthOf(libraries, 5)
      for (const [row = "", , ...cells] of rows(textOf(heading))) {
        for (const [index, cell] of cells.entries()) {
          const key = `${libraries[index] ?? ""}, ${row}`
          if (!known.has(key)) assert.match(cell, /^(–|yours|the caller's)$/, key)
        }
      }
    }
  })

  it("has the counts of docs/evidence/benchmarks.md", () => {
    const measured = new Map(
      rows(
        sections(read("docs/evidence/benchmarks.md")).find(({ heading }) => heading === "Compared with other libraries")
          ?.text ?? ""
      )
        .map((row) => [row[0] ?? "", [row[3] ?? "", counted(row[5] ?? ""), counted(row[7] ?? "")]])
    )
    const names = new Map([
      ["this library", "@store-api/core"],
      ["`Cache`", "Effect Cache"],
      ["`google-auth-library`, `OAuth2Client`", "google-auth-library OAuth2Client"],
      ["`google-auth-library`, `IdentityPoolClient`", "google-auth-library IdentityPoolClient"]
    ])
    const listed = rows(textOf("Counts"))
    assert.lengthOf(listed, measured.size)
    for (const [name = "", ...counts] of listed) {
      assert.deepStrictEqual(counts, measured.get(names.get(name) ?? codes(name)[0] ?? ""), name)
    }
  })
})
