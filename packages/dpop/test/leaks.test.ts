/** No proof and no key appears in what a program prints, logs or traces. */
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { StoreAuth } from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { leaksInOutputs } from "@store-api/testing/leaksIn"
import { secret } from "@store-api/testing/loopback"
import { render } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted, Tracer } from "effect"
import { pemOf } from "./support/keys.js"
import { optionsFor, start } from "./support/strictServers.js"

const clients = [
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["node:http", NodeHttpClient.layer]
] as const

const canariesOf = (proofs: ReadonlyArray<string>) =>
  proofs.map((value) => ({ name: "proof", value }))

/** The canaries that these values show. */
const shown = (values: Readonly<Record<string, unknown>>, proofs: ReadonlyArray<string>) =>
  leaksInOutputs(
    Object.entries(values).flatMap(([name, value]) => render(name, value)),
    canariesOf(proofs)
  )

describe("a proof", () => {
  test.live.each(clients)("is not in a response or an error of %s", function*([, layer]) {
    const servers = yield* start
    const { api, endpoint } = servers
    const { bind } = yield* Dpop.make()
    const options = bind({ ...optionsFor(servers), clientSecret: secret })
    const context = yield* Layer.build(layer)
    const store = yield* Effect.provide(StoreAuth.make(options), context)
    const response = yield* store.client.get("/orders")
    const failing = HttpClient.filterStatus(store.client, () => false)
    const error = yield* Effect.flip(failing.get("/orders"))
    const token = yield* store.provider.get
    const proofs = [...endpoint.proofs, ...api.proofs]
    assert.strictEqual(proofs.length, 3)
    deepStrictEqual(shown({ response, error, token, options, bind }, proofs), [])
    for (const proof of proofs) {
      assert.isNotEmpty(shown({ proof: { dpop: proof } }, [proof]), "control")
    }
  })

  test.live.each(clients)("is not in a span of %s", function*([, layer]) {
    const servers = yield* start
    const { api, endpoint } = servers
    const { bind } = yield* Dpop.make()
    const options = bind({ ...optionsFor(servers), clientSecret: secret })
    const spans: Array<Tracer.Span> = []
    const tracer = yield* Effect.tracer
    const recording = Tracer.make({
      ...tracer,
      span: (...of) => {
        const span = tracer.span(...of)
        spans.push(span)
        return span
      }
    })
    yield* Effect.gen(function*() {
      const store = yield* StoreAuth.make(options)
      return yield* store.client.get("/orders")
    }).pipe(Effect.provide(layer), Effect.withTracer(recording))
    const attributes = spans.map(({ attributes }) => [...attributes])
    const proofs = [...endpoint.proofs, ...api.proofs]
    deepStrictEqual(shown({ attributes }, proofs), [])
    const names = attributes.flat().map(([name]) => name)
    assert.include(names, "http.request.method", "control")
    assert.isNotEmpty(shown({ attributes: [["dpop", proofs[0]]] }, proofs), "control")
  })
})

describe("a private key", () => {
  test("is not in the service, in the options that it returns or in an error", function*() {
    const pem = pemOf()
    const privateKey = Redacted.make(pem)
    const dpop = yield* Dpop.make({ privateKey })
    const options = dpop.bind({ clientId: "demo-client" })
    const damaged = Redacted.make(pem.replace("MIGH", "MIGI"))
    const error = yield* Effect.flip(Dpop.make({ privateKey: damaged }))
    const body = pem.replace(/-----[A-Z ]+-----|\s/g, "")
    const canaries = [{ name: "key", value: body }]
    const outputs = Object.entries({ dpop, options, error }).flatMap(([name, value]) =>
      render(name, value)
    )
    deepStrictEqual(leaksInOutputs(outputs, canaries), [])
    assert.isNotEmpty(leaksInOutputs(render("control", { pem }), canaries))
  })
})
