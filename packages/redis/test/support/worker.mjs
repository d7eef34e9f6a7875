/**
 * A process of a fleet: the product as a user puts it together, over one Redis, steered by messages. Imports what is built.
 */
import { AccessTokenProvider, AuthorizedHttpClient, ClientCredentials, SharedTokenSource, TokenEndpoint } from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import { createHash } from "node:crypto"

const { apiUrl, authUrl, clientId, clientSecret, lease, redisUrl, refreshAhead } = JSON.parse(process.argv[2])

const credentials = Effect.runSync(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))

const warnings = []
const logger = Logger.make(({ logLevel, message }) => {
  if (logLevel.label === "WARN") warnings.push(String(message))
})

const runtime = ManagedRuntime.make(
  NodeStoreAuth.layerFromSource({ apiUrl, provider: { refreshAhead } }).pipe(
    Layer.provide(SharedTokenSource.layer({ authUrl, credentials, lease })),
    Layer.provide(TokenEndpoint.layer({ authUrl, credentials })),
    Layer.provide([RedisTokenStore.layer({ url: Redacted.make(redisUrl) }), NodeHttp.layer()]),
    Layer.provide(Logger.replace(Logger.defaultLogger, logger))
  )
)

const actions = {
  /** Not the token itself: what tells one from another. */
  get: Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get).pipe(
    Effect.map(({ value }) => createHash("sha256").update(Redacted.value(value)).digest("hex").slice(0, 12))
  ),
  call: Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/v1/orders")).pipe(
    Effect.flatMap((response) => Effect.as(response.text, response.status)),
    Effect.scoped
  ),
  warnings: Effect.sync(() => warnings)
}

process.on("message", ({ action, id }) => {
  const began = performance.now()
  const answer = (result) => process.send({ id, took: performance.now() - began, ...result })
  runtime.runPromise(Effect.either(actions[action])).then(
    (result) => answer(result._tag === "Right" ? { value: result.right } : { error: result.left._tag }),
    (defect) => answer({ error: String(defect) })
  )
})

process.once("disconnect", () => void runtime.dispose().finally(() => process.exit()))

// The layer is built first, so that what is measured later is no start of a process.
await runtime.runPromise(Effect.void)
process.send({ ready: true })
