import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { shows } from "@store-api/testing/renderings"
import { prop } from "@store-api/testing/test"
import { Effect, Either, Exit, FastCheck as FC, Option } from "effect"
import { baseUrl, endpointUrl, isLoopback, parseUrl } from "../src/internal/baseUrl.js"

describe("parseUrl", () => {
  it("reads a host beyond ASCII, however often it is called", () => {
    const hosts = Array.from(
      { length: 20_000 },
      () => Option.map(parseUrl("https://b\u00fccher.example/v1"), ({ host }) => host)
    )
    deepStrictEqual(
      new Set(hosts.map(Option.getOrUndefined)),
      new Set(["xn--bcher-kva.example"])
    )
  })
})

describe("baseUrl", () => {
  const loopback = [
    "localhost",
    "LOCALHOST",
    "shop.localhost",
    "127.0.0.1",
    "127.10.20.255",
    "127.1",
    "2130706433"
  ]
  const others = [
    "localhost.shop.example",
    "notlocalhost",
    "127.0.0.1.shop.example",
    "128.0.0.1",
    "10.0.0.1",
    "0.0.0.0"
  ]

  it.each([
    ...[...loopback, "[::1]", "[0:0:0:0:0:0:0:1]"].map((host) =>
      [`http://${host}`, true] as const
    ),
    ...[...others, "[::]", "[::ffff:10.0.0.1]"].map((host) =>
      [`http://${host}`, false] as const
    )
  ])("%s is a loopback address: %s", (url, expected) => {
    assert.strictEqual(isLoopback(new URL(url)), expected)
    assert.strictEqual(
      Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, false))),
      expected
    )
  })

  it.each(others)("allowInsecure allows http of the host %s", (host) => {
    const url = `http://${host}`
    assert.isTrue(Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, true))))
  })

  const elsewhere = "must be an https URL, or an http URL of this machine"

  const refusals: ReadonlyArray<readonly [reason: string, texts: ReadonlyArray<string>]> = [
    ["is empty", ["", "   "]],
    [
      "is not a URL that starts with https://",
      ["canary", "canary.shop.example", "/canary", "https://"]
    ],
    ["must be an https URL", [
      "ftp://canary.shop.example",
      "file:///canary",
      "javascript:canary",
      "canary:8080"
    ]],
    [
      "must not contain a user name or password",
      ["canary@", ":canary@", "user:canary@"].map((user) => `https://${user}auth.shop.example`)
    ],
    [
      "must not have a query",
      ["/?key=canary", "/?", "/canary?"].map((end) => `https://canary.shop.example${end}`)
    ],
    [
      "must not have a fragment",
      ["/#canary", "/#"].map((end) => `https://canary.shop.example${end}`)
    ],
    [
      elsewhere,
      ["canary.shop.example", "10.0.0.1/canary", "localhost.canary.example"].map((rest) =>
        `http://${rest}`
      )
    ]
  ]

  /** The errors about the texts, and about the URLs that they are. */
  const errorsOf = (texts: ReadonlyArray<string>) =>
    texts.flatMap((text) => URL.canParse(text) ? [text, new URL(text)] : [text])
      .map((value) => Effect.runSync(Effect.flip(baseUrl("authUrl", value, false))))

  it.each(refusals)("fails with a ConfigurationError: %s", (reason, texts) => {
    for (const error of errorsOf(texts)) {
      deepStrictEqual([error._tag, error.option, error.reason], [
        "ConfigurationError",
        "authUrl",
        reason
      ])
    }
  })

  it.each(refusals)("the error does not contain the URL: %s", (_reason, texts) => {
    for (const error of errorsOf(texts)) assert.isFalse(shows(error, "canary"))
  })

  it.each(refusals)("allowInsecure relaxes only the rule on http: %s", (reason, texts) => {
    for (const error of errorsOf(texts)) {
      assert.strictEqual(error.permittedBy, reason === elsewhere ? "allowInsecure" : undefined)
    }
    for (const text of texts) {
      const exit = Effect.runSyncExit(baseUrl("authUrl", text, true))
      assert.strictEqual(Exit.isSuccess(exit), reason === elsewhere, text)
    }
  })

  it.each([
    "https://auth.shop.example",
    "https://auth.shop.example:8443/base/",
    "HTTPS://AUTH.SHOP.EXAMPLE",
    "http://localhost",
    "http://localhost:80/base",
    "http://auth.localhost:8080",
    "http://127.9.9.9",
    "http://[::1]:80"
  ])("accepts %s as a string or as a URL", (url) => {
    for (const value of [url, new URL(url)]) {
      const { href } = Effect.runSync(baseUrl("authUrl", value, false))
      assert.strictEqual(href, new URL(url).href)
    }
  })

  it("a host that ends like a loopback address is not one", () => {
    assert.isFalse(isLoopback(new URL("redis://x127.0.0.1")))
    assert.isTrue(isLoopback(new URL("redis://127.0.0.1")))
  })

  const path = "/v1/oauth/accesstoken"

  it.each([
    {
      what: "its path is that of the specification",
      authUrl: "https://x/a/%20b//",
      url: `https://x/a/%20b${path}`
    },
    {
      what: "a host with the name of the path is not the path",
      authUrl: "https://x",
      path: "/x",
      url: "https://x/x"
    },
    { what: "the path may be a slash", authUrl: "https://x", path: "/", url: "https://x/" },
    {
      what: "without a path, the base URL stays as it is",
      authUrl: "https://x/a//",
      path: "",
      url: "https://x/a//"
    },
    {
      what: "slashes at its end count as one",
      authUrl: "https://x/a//",
      path: "b",
      url: "https://x/a/b"
    },
    {
      what: "it may begin like the path",
      authUrl: "https://x/token/a",
      path: "token",
      url: "https://x/token/a/token"
    }
  ])("the URL of an endpoint: $what", ({ url, ...options }) => {
    assert.strictEqual(Effect.runSync(endpointUrl(options, false)), url)
  })

  it("the URL of an endpoint may be http with allowInsecure alone", () => {
    const authUrl = "http://x"
    const error = Effect.runSync(Effect.flip(endpointUrl({ authUrl }, false)))
    deepStrictEqual([error.option, error.permittedBy], ["authUrl", "allowInsecure"])
    assert.isTrue(
      Exit.isFailure(Effect.runSyncExit(endpointUrl({ authUrl, allowInsecure: false }, false)))
    )
    assert.strictEqual(
      Effect.runSync(endpointUrl({ authUrl, allowInsecure: true, path: "x" }, false)),
      "http://x/x"
    )
  })

  prop("accepts only https or loopback URLs without query, fragment or user info", [FC.oneof(
    FC.webUrl({
      withFragments: true,
      withQueryParameters: true,
      validSchemes: ["http", "https", "ftp"]
    }),
    FC.string(),
    FC.string().map((rest) => `https://auth.shop.example${rest}`),
    FC.string().map((rest) => `https://${rest}`)
  )], ([text]) => {
    const result = Effect.runSync(Effect.either(baseUrl("authUrl", text, false)))
    if (Either.isLeft(result)) {
      assert.strictEqual(result.left.option, "authUrl")
      return
    }
    const url = result.right
    assert.isTrue(url.protocol === "https:" || isLoopback(url))
    deepStrictEqual([url.search, url.hash, url.username, url.password], ["", "", "", ""])
    const endpoint = Effect.runSync(endpointUrl({ authUrl: text }, false))
    assert.match(endpoint, /^[^?#]*[^/]\/v1\/oauth\/accesstoken$/)
    assert.strictEqual(new URL(endpoint).origin, url.origin)
  }, { fastCheck: { numRuns: 500 } })
})
