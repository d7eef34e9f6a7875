/** Compares docs/explanation/comparison.md with the libraries, as they are installed for the benchmarks. */
import { readFileSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "./support/command.js"
import { codes, read, rows, sectionOf } from "./support/pages.js"

const page = "docs/explanation/comparison.md"

/** The path of a file of a library. */
const fileOf = (library: string, file: string) =>
  join(realpathSync(join(root, "tools", "benchmarks", "node_modules", library)), file)

/** The file does not contain it. */
const no = (part: string | RegExp) => ({ no: part })

interface Evidence {
  /** A column of the page. */
  readonly library: string
  readonly file: string
  /** For rows of the page, what the file contains. */
  readonly rows: Readonly<Record<string, ReadonlyArray<string | RegExp | ReturnType<typeof no>>>>
}

const evidence: ReadonlyArray<Evidence> = [
  {
    library: "@azure/core-rest-pipeline",
    file: "dist/esm/util/tokenCycler.js",
    rows: {
      "renewed before expiry": ["refreshWindowInMs: 1000 * 60 * 2", "forcedRefreshWindowInMs: 1000,"],
      "after a failed renewal": ["retryIntervalInMs: 3000", "if (Date.now() < refreshTimeout)"],
      "without a token, after a failure": [
        "token?.expiresOnTimestamp ?? Date.now()",
        "subsequent requests will start a"
      ],
      "clock": ["Date.now()", no("performance.now"), no("hrtime")]
    }
  },
  {
    library: "@azure/core-rest-pipeline",
    file: "dist/esm/policies/bearerTokenAuthenticationPolicy.js",
    rows: {
      "margins of a short lifetime": ["createTokenCycler(credential /* , options */)"],
      "an API responds with 401": ["getCaeChallengeClaims", "else if (callbacks.authorizeRequestOnChallenge)"],
      "where the token may go": [`startsWith("https://")`],
      "`token_type` `BearerToken`": ["\"Authorization\", `Bearer ${accessToken.token}`"]
    }
  },
  {
    library: "@badgateway/oauth2-client",
    file: "dist/fetch-wrapper.js",
    rows: {
      "renewed before expiry": ["this.token.expiresAt > Date.now()", "!this.token.refreshToken"],
      "after a failed renewal": [
        /catch \(err\) \{\s+if \(this\.options\.onError\) \{\s+this\.options\.onError\(err\);\s+\}\s+throw err;/
      ],
      "without a token, after a failure": ["this.activeRefresh = null;", no(/backoff|delay/i)],
      "clock": ["Date.now()", no("performance.now")],
      "an API responds with 401": [/response\.status === 401\) \{\s+const newToken = await this\.refreshToken\(\);/],
      "shared between processes": ["options.getStoredToken", ".storeToken"],
      "where the token may go": [no("https:"), no("origin")],
      "`token_type` `BearerToken`": ["'Authorization', 'Bearer ' + accessToken"]
    }
  },
  {
    library: "@badgateway/oauth2-client",
    file: "dist/client.js",
    rows: {
      "redirect of the token request": [no("redirect:")],
      "retries of the token request": [no(/retry|timeout/i)],
      "`expires_in` as a string": ["(expires_in * 1000)"],
      "credentials in the body": ["new URLSearchParams()"],
      "secrets in its output": ["console.warn('Invalid OAuth2 Token Response: ', body)"]
    }
  },
  {
    library: "google-auth-library",
    file: "build/src/auth/authclient.js",
    rows: {
      "renewed before expiry": ["DEFAULT_EAGER_REFRESH_THRESHOLD_MILLIS = 5 * 60 * 1000"],
      "margins of a short lifetime": ["opts.eagerRefreshThresholdMillis"]
    }
  },
  {
    library: "google-auth-library",
    file: "build/src/auth/oauth2client.js",
    rows: {
      "after a failed renewal": ["const refreshedAccessToken = await this.processAndValidateRefreshHandler();"],
      "without a token, after a failure": [
        "const shouldRefresh = !this.credentials.access_token || this.isTokenExpiring();",
        no(/backoff/i)
      ],
      "clock": ["expiryDate <= new Date().getTime() + this.eagerRefreshThresholdMillis"],
      "an API responds with 401": [
        "statusCode === 401 || statusCode === 403",
        /\(!this\.credentials\.expiry_date \|\| this\.forceRefreshOnFailure\) &&\s+this\.refreshHandler/
      ],
      "where the token may go": [no("trustedOrigin"), no("allowedOrigin")],
      "`token_type` `BearerToken`": ["authorization: thisCreds.token_type + ' ' + thisCreds.access_token"]
    }
  },
  {
    library: "simple-oauth2",
    file: "lib/access-token.js",
    rows: {
      "renewed before expiry": ["expired(expirationWindowSeconds = 0)", "Date.now()"],
      "clock": ["Date.now()", no("performance.now"), no("hrtime")]
    }
  },
  {
    library: "simple-oauth2",
    file: "lib/access-token-parser.js",
    rows: { "`expires_in` as a string": ["Number.parseInt(expiresIn, 10)"] }
  },
  {
    library: "simple-oauth2",
    file: "lib/client/request-options.js",
    rows: { "credentials in the body": ["querystring.stringify(parameters)"] }
  },
  {
    library: "simple-oauth2",
    file: "lib/client/client.js",
    rows: {
      "retries of the token request": [no(/retry/i)],
      "secrets in its output": ["debug('Using request options: %j', options);"]
    }
  },
  {
    library: "openid-client",
    file: "../oauth4webapi/build/index.js",
    rows: {
      "redirect of the token request": ["redirect: 'manual'"],
      "retries of the token request": [no("retryAfter"), no("Retry-After")],
      "`expires_in` as a string": ["parseFloat(json.expires_in)"],
      "`token_type` `BearerToken`": [
        "json.token_type !== 'dpop' && json.token_type !== 'bearer'",
        "recognizedTokenTypes"
      ],
      "credentials in the body": ["body.set('client_secret', clientSecret)"],
      "secrets in its output": [no("console.")]
    }
  }
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
    const named = rows(read(page).replace(/\n## [^]*/, ""))
    assert.lengthOf(named, 6)
    for (const [name = "", version] of named) {
      const manifest = JSON.parse(readFileSync(fileOf(codes(name)[0] ?? "", "package.json"), "utf8")) as object
      assert.propertyVal(manifest, "version", version)
    }
  })

  it.each(evidence)("$library, $file: the lines that we read still exist", ({ file, library, rows }) => {
    const text = readFileSync(fileOf(library, file), "utf8")
    const has = (part: string | RegExp) => typeof part === "string" ? text.includes(part) : part.test(text)
    for (const [row, parts] of Object.entries(rows)) {
      for (const part of parts) {
        const isAsRead = typeof part === "object" && "no" in part ? !has(part.no) : has(part)
        assert.isTrue(isAsRead, row)
      }
    }
  })

  it("has a source line for each statement about a library, unless it is left to the user", () => {
    const known = evidence.flatMap(({ library, rows }) => Object.keys(rows).map((row) => `${library}, ${row}`))
    for (const heading of ["Caching a token", "Acquiring and sending it"]) {
      const text = sectionOf(page, heading)
      const libraries = codes(text.split("\n").find((line) => line.startsWith("|")) ?? "")
      assert.lengthOf(libraries, 5)
      for (const [row = "", , ...cells] of rows(text)) {
        for (const [index, cell] of cells.entries()) {
          const statement = `${libraries[index] ?? ""}, ${row}`
          if (!known.includes(statement)) assert.match(cell, /^(–|yours|the caller's)$/, statement)
        }
      }
    }
  })

  it("names the version of Effect 4 that the tests use", () => {
    const [, version] = /^ {2}effect@([\d.]+):$/m.exec(read("tools/effect4/line/pnpm-lock.yaml")) ?? []
    assert.include(sectionOf(page, "On Effect 4"), `\`effect\` ${version ?? "of no version"}.`)
  })

  it("has the counts of docs/evidence/benchmarks.md", () => {
    const measured = new Map(
      rows(sectionOf("docs/evidence/benchmarks.md", "Compared with other libraries"))
        .map((row) => [row[0] ?? "", [row[3] ?? "", counted(row[5] ?? ""), counted(row[7] ?? "")]])
    )
    const names = new Map([
      ["this library", "@store-api/core"],
      ["`Cache`", "Effect Cache"],
      ["`google-auth-library`, `OAuth2Client`", "google-auth-library OAuth2Client"],
      ["`google-auth-library`, `IdentityPoolClient`", "google-auth-library IdentityPoolClient"]
    ])
    const listed = rows(sectionOf(page, "Counts"))
    assert.lengthOf(listed, measured.size)
    for (const [name = "", ...counts] of listed) {
      assert.deepStrictEqual(counts, measured.get(names.get(name) ?? codes(name)[0] ?? ""), name)
    }
  })
})
