/** Assertions from a file, by an option and by configuration. */
import { chmodSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider } from "@store-api/core"
import { ClientAssertion, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { listen, newFolder, useVariables } from "@store-api/testing/loopback"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Cause, ConfigProvider, Effect, Layer, Redacted } from "effect"

const variables = (entries: Record<string, string>) =>
  Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))

const newFile = Effect.map(newFolder("assertion"), (folder) => join(folder, "token"))

/** A token endpoint that accepts everything, and the fields that it received. */
const startEndpoint = Effect.gen(function*() {
  const received: Array<Record<string, string>> = []
  const server = createServer((request, response) =>
    void text(request).then((body) => {
      received.push(Object.fromEntries(new URLSearchParams(body)))
      response.setHeader("content-type", "application/json")
      response.end(`{"access_token":"an-invented-token","token_type":"bearer"}`)
    })
  )
  const { url } = yield* listen(server)
  return { url, received }
})

const configured = (url: string, file: string) => ({
  STORE_API_AUTH_URL: url,
  STORE_API_URL: url,
  STORE_API_CLIENT_ID: "demo-client",
  STORE_API_CLIENT_ASSERTION_FILE: file
})

const refresh = Effect.flatMap(
  AccessTokenProvider.AccessTokenProvider,
  (provider) => provider.refresh
)

test.live("an assertion is read from its file for each token, without the white space around it", function*() {
  const { received, url } = yield* startEndpoint
  const file = yield* newFile
  yield* Effect.gen(function*() {
    writeFileSync(file, "an-invented-assertion\n")
    yield* refresh
    writeFileSync(file, " another-invented-assertion \r\n")
    yield* refresh
  }).pipe(
    Effect.provide(NodeStoreAuth.layerConfig()),
    Effect.provide(variables(configured(url, file)))
  )
  deepStrictEqual(
    received.map((fields) => fields["client_assertion"]),
    ["an-invented-assertion", "another-invented-assertion"]
  )
  deepStrictEqual(received[0], {
    grant_type: "client_credentials",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_id: "demo-client",
    client_assertion: "an-invented-assertion"
  })
})

test.live("a file that is missing, empty or unreadable is a CredentialsError that says so", function*() {
  const file = yield* newFile
  const reasonOf = (path: string) =>
    Effect.map(Effect.flip(ClientAssertion.fromFile(path)()), ({ field, reason }) => {
      assert.strictEqual(field, "clientAssertion")
      return reason
    })
  assert.strictEqual(yield* reasonOf(file), "cannot be read from its file (ENOENT)")
  assert.strictEqual(
    yield* reasonOf(join(file, "..")),
    "cannot be read from its file (EISDIR)"
  )
  writeFileSync(file, " \n")
  assert.strictEqual(yield* reasonOf(file), "is empty in its file")
  if (process.getuid?.() !== 0) {
    chmodSync(file, 0)
    assert.strictEqual(yield* reasonOf(file), "cannot be read from its file (EACCES)")
  }
})

test.live("an assertion that is given instead of its file is not part of the error", function*() {
  const pasted = "an-invented-assertion-that-is-no-path"
  const error = yield* Effect.flip(ClientAssertion.fromFile(pasted)())
  assert.isFalse(shows(error, pasted))
  assert.isTrue(shows(new Error(pasted), pasted), "control")
})

test.live("a secret and an assertion file are not allowed together", function*() {
  const { received, url } = yield* startEndpoint
  const error = yield* Effect.flip(Effect.provide(refresh, NodeStoreAuth.layerConfig())).pipe(
    Effect.provide(variables({
      ...configured(url, yield* newFile),
      STORE_API_CLIENT_SECRET: "an-invented-secret"
    }))
  )
  assert.include(
    inspect(error),
    "STORE_API_CLIENT_ASSERTION_FILE must not be set together with STORE_API_CLIENT_SECRET"
  )
  deepStrictEqual(received, [])
})

test.live("without any variable, the error names each of them", function*() {
  const cause = yield* refresh.pipe(
    Effect.provide(NodeStoreAuth.layerConfig()),
    Effect.sandbox,
    Effect.flip,
    Effect.provide(variables({}))
  )
  for (const name of ["AUTH_URL", "URL", "CLIENT_ID", "CLIENT_SECRET"]) {
    assert.include(Cause.pretty(cause), `STORE_API_${name}`)
  }
})

test.live("PromiseStoreAuth reads the assertion file too, and keeps the other options of the endpoint", function*() {
  const { received, url } = yield* startEndpoint
  const file = yield* newFile
  writeFileSync(file, "an-invented-assertion")
  yield* useVariables(configured(url, file))
  const store = PromiseStoreAuth.make({ endpoint: { path: "/token" } })
  const token = yield* Effect.promise(() => store.getToken())
  yield* Effect.promise(() => store.dispose())
  assert.strictEqual(Redacted.value(token.value), "an-invented-token")
  deepStrictEqual(received.map((fields) => fields["client_assertion"]), [
    "an-invented-assertion"
  ])
})
