import { format, inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, TokenStore } from "@store-api/core"
import { withConsole } from "@store-api/testing/effectMajor"
import { render } from "@store-api/testing/renderings"
import { Cause, DateTime, Effect, Logger, Option, Schema } from "effect"

const at = DateTime.unsafeMake("2026-01-01T00:00:00Z")
const later = DateTime.unsafeMake("2026-01-01T00:05:00Z")

const expired = (reason: AccessTokenError.TokenExpiredError["reason"]) =>
  new AccessTokenError.TokenExpiredError({ reason, expiredAt: at, checkedAt: later })
const credentials = (field: AccessTokenError.CredentialsError["field"], reason: string) =>
  new AccessTokenError.CredentialsError({ field, reason })
const request = (reason: AccessTokenError.TokenRequestError["reason"], attempts = 2) =>
  new AccessTokenError.TokenRequestError({ reason, attempts, code: "EINVENTED" })
const refused = (
  reason: AccessTokenError.TokenRefusedError["reason"],
  changedByFormDecoding = false,
  httpStatus = 418
) =>
  new AccessTokenError.TokenRefusedError({
    reason,
    httpStatus,
    code: "invented_code",
    description: "what the endpoint of version 2.1 said.",
    changedByFormDecoding
  })
const response = new AccessTokenError.TokenResponseError({
  problems: [{ path: "access_token", expected: "a bearer token" }, {
    path: "",
    expected: "a JSON object"
  }]
})
const configuration = new AccessTokenError.ConfigurationError({
  option: "authUrl",
  reason: "is empty"
})
const untrusted = new AccessTokenError.UntrustedOriginError({
  origin: "https://elsewhere.example",
  trusted: ["https://api.shop.example", "https://other.shop.example"]
})
const store = new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })

/** Every tag with every reason, whether asking again may help, and a piece of the advice that it must give. */
const family: ReadonlyArray<
  readonly [AccessTokenError.AccessTokenError, transient: boolean, advice: RegExp]
> = [
  [expired("Elapsed"), true, /get a new one from AccessTokenProvider/],
  [expired("ClockMovedBack"), true, /get a new one from AccessTokenProvider/],
  [expired("DeadOnArrival"), true, /check the system clock and the expires_in/],
  [credentials("clientId", "is empty"), false, /correct the client credentials/],
  [
    credentials("clientSecret", "is missing from the configuration"),
    false,
    /correct the client credentials/
  ],
  [request("Transport"), true, /check authUrl, the network and the proxy/],
  [request("Timeout"), true, /try again later/],
  [
    request("Certificate"),
    false,
    /check authUrl, the system clock and the trusted certificate authorities/
  ],
  [request("Proxy"), false, /check the user name and password for the proxy/],
  [request("Redirect"), false, /set authUrl to its target/],
  [request("TooLarge"), false, /check authUrl/],
  [request("Closed"), false, /keep its scope open/],
  [refused("InvalidClient"), false, /check the client id and secret/],
  [
    refused("InvalidClient", true),
    false,
    /characters that servers read differently, such as \+ or %/
  ],
  [
    refused("InvalidRequest"),
    false,
    /check authUrl, and the parameters of the token request if it has any/
  ],
  [refused("RateLimited"), true, /send fewer requests/],
  [refused("Unavailable"), true, /try again later/],
  [refused("Other"), false, /check authUrl and what the client is allowed to do/],
  [refused("Other", false, 401), false, /check authUrl, which leads to a protected API/],
  [response, false, /check authUrl/]
]

const rows = family.map(([error, transient, advice]) => {
  const detail = "field" in error ? error.field : "reason" in error ? error.reason : ""
  const raw = "changedByFormDecoding" in error && error.changedByFormDecoding
    ? " of raw credentials"
    : ""
  const status = "httpStatus" in error && error.httpStatus === 401 ? " with status 401" : ""
  return [`${error._tag} ${detail}${raw}${status}`.trim(), {
    error,
    transient,
    advice
  }] as const
})

const outside = [configuration, untrusted, store].map((error) => [error._tag, error] as const)
const all = [...rows.map(([name, { error }]) => [name, error] as const), ...outside]

const printed: Array<string> = []
const print = (line: unknown) =>
  void printed.push(typeof line === "string" ? line : inspect(line, { depth: 50 }))

/** Effect's loggers. The default logger prints the output of the first one. */
const loggers: ReadonlyArray<readonly [name: string, logger: Logger.Logger<unknown, void>]> = [
  ["string", Logger.map(Logger.stringLogger, print)],
  ["logFmt", Logger.map(Logger.logfmtLogger, print)],
  ["json", Logger.map(Logger.jsonLogger, print)],
  ["structured", Logger.map(Logger.structuredLogger, print)],
  ["pretty on a terminal", Logger.prettyLogger({ mode: "tty", colors: false })],
  ["pretty in a browser", Logger.prettyLogger({ mode: "browser", colors: false })]
]

/** One sentence: it starts with a capital, ends with a full stop, and no other sentence starts inside. */
const isOneSentence = (text: string) =>
  /^[A-Z].*[^.]\.$/.test(text) && !/[.!?]\s+[A-Z]/.test(text) && !/\n/.test(text)

describe("AccessTokenError", () => {
  it.each(all)("the message of %s is one sentence that says what to do", (_name, error) => {
    assert.isTrue(isOneSentence(error.message), error.message)
    for (const bad of ["It was not sent. Correct it.", "It was not sent", ""]) {
      assert.isFalse(isOneSentence(bad), "control")
    }
  })

  it.each(rows)("the message of %s gives advice for its cause", (_name, { advice, error }) => {
    assert.match(error.message, advice)
  })

  it.each(rows)("%s is an error of the family AccessTokenError", (_name, { error }) => {
    assert.isTrue(AccessTokenError.isAccessTokenError(error))
  })

  it.each(rows)("%s is transient if asking again may help", (_name, { error, transient }) => {
    assert.strictEqual(AccessTokenError.isTransient(error), transient)
  })

  const { TokenRefusedError, TokenRequestError } = AccessTokenError

  it.each<readonly [string, Error, text: string]>([
    ["the time of expiry", expired("Elapsed"), "2026-01-01T00:00:00"],
    [
      "the time at which a token expired on arrival",
      expired("DeadOnArrival"),
      "2026-01-01T00:00"
    ],
    ["attempts with a code", request("Transport"), "2 attempts, EINVENTED"],
    ["one attempt", request("Transport", 1), "(1 attempt,"],
    [
      "attempts without a code",
      new TokenRequestError({ reason: "Timeout", attempts: 0 }),
      "(0 attempts)"
    ],
    [
      "the status, the code and the description of a refusal",
      refused("Other"),
      "(status 418, invented_code, what the endpoint of version 2.1 said): check"
    ],
    [
      "the status alone",
      new TokenRefusedError({ reason: "Other", httpStatus: 404 }),
      "(status 404)"
    ],
    [
      "a description without its full stop",
      new TokenRefusedError({
        reason: "Other",
        httpStatus: 418,
        description: "It is a teapot. "
      }),
      "(status 418, It is a teapot): check"
    ],
    [
      "the problems of a response",
      response,
      "access_token must be a bearer token; the body must be a JSON object"
    ],
    [
      "the field of credentials",
      credentials("clientSecret", "is empty"),
      "The clientSecret is"
    ],
    ["the option", configuration, "The option authUrl is empty"],
    ["the origin of a request", untrusted, "https://elsewhere.example"],
    ["the trusted origins", untrusted, "https://api.shop.example, https://other.shop.example"],
    ["the option that adds an origin", untrusted, "client.trustedOrigins"]
  ])("the message of an error contains %s", (_name, { message }, text) => {
    assert.include(message, text)
  })

  const names = {
    authUrl: "--auth-url",
    clientSecret: "STORE_API_CLIENT_SECRET",
    "client.trustedOrigins": "--trust"
  }
  const insecure = new AccessTokenError.ConfigurationError({
    option: "authUrl",
    reason: "must be an https URL",
    permittedBy: "allowInsecure"
  })
  const fromVariable = new AccessTokenError.CredentialsError({
    field: "clientSecret",
    reason: "is empty",
    variable: "MY_STORE_CLIENT_SECRET"
  })

  it("the message of an error names the option that permits the value", () => {
    assert.strictEqual(
      insecure.message,
      "The option authUrl must be an https URL, unless allowInsecure is set."
    )
  })

  it("the message of an error names the variable instead of the field", () => {
    assert.strictEqual(
      fromVariable.message,
      "MY_STORE_CLIENT_SECRET is empty: correct the client credentials."
    )
  })

  it.each([
    [
      insecure.describe({ ...names, allowInsecure: "--allow-insecure" }),
      "--auth-url must be an https URL, unless --allow-insecure is set."
    ],
    [
      credentials("clientSecret", "is empty").describe(names),
      "STORE_API_CLIENT_SECRET is empty: correct the client credentials."
    ],
    [
      fromVariable.describe(names),
      "STORE_API_CLIENT_SECRET is empty: correct the client credentials."
    ]
  ])("describe uses the names that a program gives to the options: %s", (text, expected) => {
    assert.strictEqual(text, expected)
  })

  it.each(
    [
      ["authUrl", request("Transport")],
      ["authUrl", request("Redirect")],
      ["authUrl", refused("InvalidRequest")],
      ["authUrl", response],
      ["client.trustedOrigins", untrusted]
    ] as const
  )("describe changes only the name of %s in the advice: %#", (option, error) => {
    assert.include(error.message, option)
    assert.strictEqual(
      error.describe(names),
      error.message.replaceAll(option, names[option])
    )
  })

  it.each(all)("every way of printing %s shows its message", (_name, error) => {
    for (const { name, text } of render("", error)) {
      // A copy of its properties is another object.
      if (name !== ": JSON of a spread") assert.include(text, error.message, name)
    }
    assert.notInclude(
      JSON.stringify({ ...error }),
      error.message,
      "control: a copy does not show it"
    )
  })

  it.effect.each(loggers)(
    "the logger %s shows the message of every error, wherever it is logged",
    ([, logger]) =>
      Effect.gen(function*() {
        for (const [name, error] of all) {
          const text = "an invented text"
          const logs = [
            ...[[text, error], [error], [{ error }], [text, Cause.fail(error)], [
              text,
              Cause.die(error)
            ]]
              .map((values) => Effect.logWarning(...values)),
            Effect.annotateLogs(Effect.logWarning(text), "error", error)
          ]
          for (const log of logs) {
            printed.length = 0
            yield* log
            assert.include(printed.join("\n"), error.message, name)
          }
        }
      }).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        withConsole((_, args) => void printed.push(format(...args)))
      )
  )

  // The titles do not contain the messages: an error while titles are made leaves no test to fail.
  it.each(all)("%s has its public name as identifier", (_name, error) => {
    const { identifier } = error.constructor as unknown as { readonly identifier: string }
    assert.strictEqual(identifier, `@store-api/core/${error._tag}`)
  })

  it.each(all)("%s is the same after encoding and decoding", (_name, error) => {
    const schema = Schema.Union(
      AccessTokenError.AccessTokenError,
      AccessTokenError.ConfigurationError,
      AccessTokenError.UntrustedOriginError,
      TokenStore.TokenStoreError
    )
    const waiting = AccessTokenError.isAccessTokenError(error)
      ? AccessTokenError.withRetryAt(error, Option.some(later))
      : error
    for (const original of [error, waiting]) {
      const decoded = Schema.decodeUnknownSync(schema)(
        JSON.parse(JSON.stringify(Schema.encodeSync(schema)(original)))
      )
      deepStrictEqual(decoded, original)
      assert.strictEqual(decoded.constructor, original.constructor)
      assert.strictEqual(decoded.message, original.message)
    }
  })

  const ofParameters = "check the parameters of the token request."
  const ofUrl = "check authUrl, and the parameters of the token request if it has any."
  const ofClient = "check the client id and secret, and what the client is allowed to do."
  const ofPath = "check authUrl and the path of the token endpoint."

  it.each<readonly [status: number, advice: string, codes: ReadonlyArray<string | undefined>]>(
    [
      [400, ofParameters, ["invalid_scope", "invalid_target"]],
      [400, ofUrl, [
        "my_invalid_scope",
        "invalid_scopes",
        "my_invalid_grant",
        "invalid_grants"
      ]],
      [400, ofClient, ["invalid_grant", "unauthorized_client"]],
      [400, ofPath, [undefined]],
      [404, ofPath, [undefined]],
      [405, ofPath, ["invented"]]
    ]
  )("a refusal with status %s: %s, because of the code: %j", (status, advice, codes) => {
    const reason = status === 400 ? "InvalidRequest" : "Other"
    for (const code of codes) {
      const error = new AccessTokenError.TokenRefusedError({
        reason,
        httpStatus: status,
        code
      })
      assert.include(error.message, `): ${advice}`)
    }
  })

  it("the advice on form decoding names the request that sends any character", () => {
    const error = refused("InvalidClient", true)
    assert.match(error.message, / or %, unless TokenRequest\.clientSecretPost sends them\.$/)
    assert.match(
      error.describe({ "endpoint.request": "--post" }),
      / or %, unless --post sends them\.$/
    )
  })

  it("the message explains form decoding only for refused credentials that it changes", () => {
    assert.notInclude(refused("InvalidClient").message, "differently")
    assert.notInclude(refused("InvalidRequest", true).message, "differently")
  })

  /** Asking again does not help against these. */
  const permanent = rows.filter(([, { error }]) =>
    error._tag === "CredentialsError" ||
    ("reason" in error &&
      ["Certificate", "Proxy", "Redirect", "Closed", "InvalidClient", "InvalidRequest"]
        .includes(error.reason))
  )
  const others = rows.filter((row) => !permanent.includes(row))

  it.each(others)(
    "withRetryAt gives %s another retryAt, at the end of its message",
    (_name, { error }) => {
      deepStrictEqual(AccessTokenError.retryAt(error), Option.none())
      const waiting = AccessTokenError.withRetryAt(error, Option.some(later))
      deepStrictEqual(AccessTokenError.retryAt(waiting), Option.some(later))
      assert.isUndefined(error.retryAt, "the first is as it was")
      assert.strictEqual(waiting.constructor, error.constructor)
      assert.strictEqual(
        waiting.message,
        `${error.message} Retry after 2026-01-01T00:05:00.000Z.`
      )
      deepStrictEqual({ ...AccessTokenError.withRetryAt(Option.none())(waiting) }, {
        ...error
      })
    }
  )

  it.each(permanent)("withRetryAt leaves %s without a retryAt", (_name, { error }) => {
    deepStrictEqual([permanent.length, others.length], [9, 11])
    assert.strictEqual(AccessTokenError.withRetryAt(error, Option.some(later)), error)
    const withOne =
      new (error.constructor as new(fields: unknown) => AccessTokenError.AccessTokenError)({
        ...error,
        retryAt: later
      })
    deepStrictEqual({ ...AccessTokenError.withRetryAt(withOne, Option.some(later)) }, {
      ...error
    })
  })

  it("no other value is of the family, transient or has a retryAt", () => {
    const similar = {
      _tag: "TokenRequestError",
      reason: "Transport",
      attempts: 1,
      retryAt: later
    }
    const others = [
      undefined,
      null,
      0,
      "TokenExpiredError",
      {},
      new Error("other"),
      configuration,
      untrusted,
      similar
    ]
    for (const other of others) {
      assert.isFalse(
        AccessTokenError.isAccessTokenError(other) || AccessTokenError.isTransient(other)
      )
      deepStrictEqual(AccessTokenError.retryAt(other), Option.none())
    }
  })

  it("a TokenResponseError that is decoded keeps only the expectation at each path", () => {
    const encoded = Schema.encodeSync(AccessTokenError.TokenResponseError)(response)
    const problems = encoded.problems.map((problem) => ({
      ...problem,
      actual: "an invented token"
    }))
    deepStrictEqual(
      Schema.decodeUnknownSync(AccessTokenError.TokenResponseError)({ ...encoded, problems })
        .problems,
      response.problems
    )
  })

  it("an error prints no field without a value, even if it is given as undefined", () => {
    const { ConfigurationError, CredentialsError, TokenRefusedError, TokenRequestError } =
      AccessTokenError
    const retryAt = undefined
    const errors = [
      new ConfigurationError({
        option: "authUrl",
        reason: "is empty",
        permittedBy: undefined
      }),
      new CredentialsError({
        field: "clientId",
        reason: "is empty",
        variable: undefined,
        retryAt
      }),
      new TokenRequestError({ reason: "Timeout", attempts: 1, code: undefined, retryAt }),
      new TokenRefusedError({
        reason: "Other",
        httpStatus: 500,
        code: undefined,
        description: undefined,
        retryAt
      }),
      ...rows.map(([, { error }]) => AccessTokenError.withRetryAt(Option.none())(error))
    ]
    const isShown = (error: object) =>
      /undefined/.test(inspect(error) + format("%s %O", error, error))
    for (const error of errors) {
      assert.isFalse(isShown(error), inspect(error))
      assert.notInclude(Object.values(error), undefined)
    }
    assert.isTrue(
      isShown({ ...errors[0], permittedBy: undefined }),
      "control: the search finds it"
    )
  })

  it("the optional fields of a constructor may be omitted", () => {
    const error = new AccessTokenError.TokenRefusedError({ reason: "Other", httpStatus: 500 })
    deepStrictEqual({ ...error }, { ...error, changedByFormDecoding: false })
    assert.sameMembers(Object.keys(error), [
      "_tag",
      "reason",
      "httpStatus",
      "changedByFormDecoding"
    ])
  })

  it("the sentence of Proxy names the status 407", () => {
    assert.strictEqual(
      new AccessTokenError.TokenRequestError({ reason: "Proxy", attempts: 1 }).message,
      "The proxy refused the connection to the token endpoint (407, 1 attempt): " +
        "check the user name and password for the proxy."
    )
  })

  it("the sentence of Closed tells the HTTP client from the layer of the token, by the code", () => {
    const closed = { reason: "Closed", attempts: 1 } as const
    assert.strictEqual(
      new AccessTokenError.TokenRequestError(closed).message,
      "The layer of the access token is closed: keep its scope open."
    )
    assert.strictEqual(
      new AccessTokenError.TokenRequestError({ ...closed, code: "UND_ERR_DESTROYED" }).message,
      "The layer of the HTTP client is closed (1 attempt, UND_ERR_DESTROYED): keep its scope open."
    )
  })

  it("an encoded error is a plain object without objects in it", () => {
    const refusal = AccessTokenError.withRetryAt(refused("RateLimited"), Option.some(later))
    deepStrictEqual<unknown>(Schema.encodeSync(AccessTokenError.AccessTokenError)(refusal), {
      _tag: "TokenRefusedError",
      reason: "RateLimited",
      httpStatus: 418,
      code: "invented_code",
      description: "what the endpoint of version 2.1 said.",
      changedByFormDecoding: false,
      retryAt: "2026-01-01T00:05:00.000Z"
    })
  })
})
