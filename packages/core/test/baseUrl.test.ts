import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { shows } from "@store-api/testing/renderings"
import { prop } from "@store-api/testing/test"
import { Effect, Either, Exit, FastCheck as FC, Option } from "effect"
import { baseUrl, endpointUrl, isLoopback } from "../src/internal/baseUrl.js"

describe("baseUrl", () => {
  it.each([
    ["http://localhost", true],
    ["http://LOCALHOST", true],
    ["http://shop.localhost", true],
    ["http://127.0.0.1", true],
    ["http://127.10.20.255", true],
    ["http://127.1", true],
    ["http://2130706433", true],
    ["http://[::1]", true],
    ["http://[0:0:0:0:0:0:0:1]", true],
    ["http://localhost.shop.example", false],
    ["http://notlocalhost", false],
    ["http://127.0.0.1.shop.example", false],
    ["http://128.0.0.1", false],
    ["http://10.0.0.1", false],
    ["http://0.0.0.0", false],
    ["http://[::]", false],
    ["http://[::ffff:10.0.0.1]", false]
  ])("%s is a loopback address: %s", (url, expected) => {
    assert.strictEqual(isLoopback(new URL(url)), expected)
    assert.strictEqual(Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, false))), expected)
    assert.isTrue(Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, true))), "allowInsecure allows it")
  })

  const empty = "is empty; give it the URL of the service"
  const noUrl = "is not a URL; it must start with https:// and a host name"
  const noHttps = "must be an https URL"
  const userInfo = "must not hold a user name or password"
  const elsewhere = "must be an https URL, or an http URL of this machine"

  it.each([
    ["empty", "", empty],
    ["blank", "   ", empty],
    ["not a URL", "canary", noUrl],
    ["a host without a scheme", "canary.shop.example", noUrl],
    ["a path", "/canary", noUrl],
    ["a scheme alone", "https://", noUrl],
    ["ftp", "ftp://canary.shop.example", noHttps],
    ["file", "file:///canary", noHttps],
    ["javascript", "javascript:canary", noHttps],
    ["a host and a port without a scheme", "canary:8080", noHttps],
    ["a user name", "https://canary@auth.shop.example", userInfo],
    ["a password", "https://:canary@auth.shop.example", userInfo],
    ["both", "https://user:canary@auth.shop.example", userInfo],
    ["a query", "https://auth.shop.example/?key=canary", "must not have a query"],
    ["an empty query", "https://canary.shop.example/?", "must not have a query"],
    ["an empty query behind a path", "https://auth.shop.example/canary?", "must not have a query"],
    ["a fragment", "https://auth.shop.example/#canary", "must not have a fragment"],
    ["an empty fragment", "https://canary.shop.example/#", "must not have a fragment"],
    ["http to another machine", "http://canary.shop.example", elsewhere],
    ["http to an address of another machine", "http://10.0.0.1/canary", elsewhere],
    ["http to a name that begins like a local one", "http://localhost.canary.example", elsewhere]
  ])("%s fails with a ConfigurationError that does not contain it, as a string and as a URL", (_name, text, reason) => {
    for (const value of URL.canParse(text) ? [text, new URL(text)] : [text]) {
      const error = Effect.runSync(Effect.flip(baseUrl("authUrl", value, false)))
      deepStrictEqual([error._tag, error.option, error.reason], ["ConfigurationError", "authUrl", reason])
      deepStrictEqual(error.permittedBy, Option.liftPredicate("allowInsecure", () => reason === elsewhere))
      assert.isFalse(shows(error, "canary"))
    }
  })

  it("accepts https and http of this machine, as a string and as a URL", () => {
    const hosts = ["localhost", "localhost:80/base", "auth.localhost:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:80"]
    const secure = ["https://auth.shop.example", "https://auth.shop.example:8443/base/", "HTTPS://AUTH.SHOP.EXAMPLE"]
    for (const url of [...secure, ...hosts.map((host) => `http://${host}`)]) {
      for (const value of [url, new URL(url)]) {
        assert.strictEqual(Effect.runSync(baseUrl("authUrl", value, false)).href, new URL(url).href)
      }
    }
  })

  it("a host that ends like a loopback address is not one", () => {
    assert.isFalse(isLoopback(new URL("redis://x127.0.0.1")))
    assert.isTrue(isLoopback(new URL("redis://127.0.0.1")))
  })

  it.each([
    { what: "a host with the name of the path is not the path", authUrl: "https://x", path: "/x", url: "https://x/x" },
    { what: "the path may be a slash", authUrl: "https://x", path: "/", url: "https://x/" },
    { what: "without a path, the base URL stays as it is", authUrl: "https://x/a//", path: "", url: "https://x/a//" },
    { what: "slashes at its end count as one", authUrl: "https://x/a//", path: "b", url: "https://x/a/b" },
    { what: "it may begin like the path", authUrl: "https://x/token/a", path: "token", url: "https://x/token/a/token" }
  ])("the URL of an endpoint: $what", ({ authUrl, path, url }) => {
    assert.strictEqual(Effect.runSync(endpointUrl({ authUrl, path })), url)
  })

  it("the URL of an endpoint may be http with allowInsecure alone", () => {
    const authUrl = "http://x"
    const error = Effect.runSync(Effect.flip(endpointUrl({ authUrl })))
    deepStrictEqual([error.option, error.permittedBy], ["authUrl", Option.some("allowInsecure")])
    assert.isTrue(Exit.isFailure(Effect.runSyncExit(endpointUrl({ authUrl, allowInsecure: false }))))
    assert.strictEqual(Effect.runSync(endpointUrl({ authUrl, allowInsecure: true, path: "x" })), "http://x/x")
  })

  prop("accepts only https or loopback URLs without query, fragment and user info", [FC.oneof(
    FC.webUrl({ withFragments: true, withQueryParameters: true, validSchemes: ["http", "https", "ftp"] }),
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
    const endpoint = Effect.runSync(endpointUrl({ authUrl: text }))
    assert.match(endpoint, /^[^?#]*[^/]\/v1\/oauth\/accesstoken$/)
    assert.strictEqual(new URL(endpoint).origin, url.origin)
  }, { fastCheck: { numRuns: 500 } })
})
