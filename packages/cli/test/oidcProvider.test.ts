import { generateKeyPairSync } from "node:crypto"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import Provider from "oidc-provider"
import { build, newUser, processTimeout, run } from "./support/cli.js"

beforeAll(build, 120_000)

const secret = "an-invented-secret-of-the-client"

/** A real authorization server that somebody else wrote, at the specification's path; and an API that asks it. */
const started = Effect.gen(function*() {
  const requests: Array<string> = []
  let handle: Http.RequestListener = () => undefined
  const server = yield* Effect.acquireRelease(
    Effect.async<Http.Server>((resume) => {
      const server = Http.createServer((request, response) => {
        requests.push(request.url ?? "")
        handle(request, response)
      }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, {
    clients: [{
      client_id: "interop-client",
      client_secret: secret,
      token_endpoint_auth_method: "client_secret_post",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: []
    }],
    routes: { token: "/v1/oauth/accesstoken" },
    ttl: { ClientCredentials: 600 },
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] }
  })
  const callback = provider.callback()
  handle = (request, response) => {
    if (request.url !== "/orders") return void callback(request, response)
    const token = (request.headers.authorization ?? "").replace(/^Bearer /, "")
    void provider.ClientCredentials.find(token).then((found) =>
      response.writeHead(found === undefined ? 401 : 200, { "Content-Type": "application/json" }).end("{\"orders\":[]}")
    )
  }
  const user = yield* newUser({
    STORE_API_AUTH_URL: url,
    STORE_API_URL: url,
    STORE_API_CLIENT_ID: "interop-client",
    STORE_API_CLIENT_SECRET: secret
  }, Effect.succeed([secret]))
  return { user, tokenRequests: () => requests.filter((path) => path !== "/orders").length }
})

describe("store-api against oidc-provider", { timeout: processTimeout }, () => {
  it.scopedLive("has a token, keeps it, calls with it, and finds nothing wrong", () =>
    Effect.gen(function*() {
      const { tokenRequests, user } = yield* started
      const token = yield* run(user, ["token"], { shows: true })
      deepStrictEqual([token.code, token.stderr], [0, ""])
      assert.match(token.stdout, /^[\w-]{20,}\n$/)
      deepStrictEqual(yield* run(user, ["call", "GET", "/orders", "--fail"]), {
        code: 0,
        stdout: "{\"orders\":[]}",
        stderr: ""
      })
      assert.match((yield* run(user, ["status"])).stdout, /good for another 9 min/)
      assert.strictEqual(tokenRequests(), 1)
      const check = yield* run(user, ["check", "/orders"])
      deepStrictEqual([check.code, check.stdout.includes("FAIL")], [0, false])
    }))

  it.scopedLive("is told that the secret is wrong", () =>
    Effect.gen(function*() {
      const { user } = yield* started
      const wrong = { ...user, env: { ...user.env, STORE_API_CLIENT_SECRET: "another-invented-one" } }
      const { code, stdout } = yield* run(wrong, ["check"])
      assert.strictEqual(code, 4)
      assert.match(stdout, /FAIL token request .* the client id or the secret is wrong \(401\)/)
    }))
})
