import * as Http from "node:http"
import { inspect } from "node:util"
import * as Zlib from "node:zlib"
import { HttpClient, HttpClientError, HttpClientRequest } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { httpReason } from "@store-api/testing/effectMajor"
import { at, get, listen, until } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Option, Stream } from "effect"

type Encode = (bytes: Uint8Array) => Uint8Array

// From Node 22.15; the types are those of Node 20.
const { zstdCompressSync } = Zlib as { readonly zstdCompressSync?: Encode }

/** Codings as servers write them, and what the header says of them. */
const codings: Readonly<Record<string, Encode>> = {
  gzip: Zlib.gzipSync,
  GZIP: Zlib.gzipSync,
  "x-gzip": Zlib.gzipSync,
  deflate: Zlib.deflateSync,
  br: Zlib.brotliCompressSync,
  "gzip, br": (bytes) => Zlib.brotliCompressSync(Zlib.gzipSync(bytes)),
  "deflate,GZip": (bytes) => Zlib.gzipSync(Zlib.deflateSync(bytes)),
  // Without the header of zlib, as some servers send it.
  "Deflate": Zlib.deflateRawSync,
  " gzip ,  identity": Zlib.gzipSync,
  ...zstdCompressSync === undefined ? {} : { zstd: zstdCompressSync }
}

const tokenBody = JSON.stringify({
  access_token: "an-invented-token",
  token_type: "Bearer",
  expires_in: 3599
})

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** Answers with the body of `respond`, encoded by the coding in the path of the API or by that for tokens. */
const startCompressing = (
  coding: string,
  status = 200,
  tokens = bytesOf(tokenBody)
) =>
  Effect.suspend(() => {
    const encode = codings[coding] ?? ((bytes: Uint8Array) => bytes)
    const server = Http.createServer((request, response) => {
      request.resume()
      const isToken = request.url === "/v1/oauth/accesstoken"
      const body = encode(isToken ? tokens : bytesOf("the orders"))
      response.setHeader("Content-Encoding", coding)
      if (status === 204) {
        response.writeHead(status).end()
        return
      }
      response.writeHead(status, { "Content-Length": body.length })
      response.end(request.method === "HEAD" ? undefined : body)
    })
    return listen(server)
  })

const http = { proxy: "none" } as const

describe("NodeHttp decodes responses", () => {
  test.live.each(Object.keys(codings))(
    "with the coding %s, of the endpoint and of the API",
    function*(coding) {
      const { url } = yield* startCompressing(coding)
      const { client } = yield* NodeStoreAuth.make({ ...at(url), http })
      const response = yield* client.get("/orders")
      assert.strictEqual(yield* response.text, "the orders")
      assert.notProperty(response.headers, "content-encoding")
      assert.notProperty(response.headers, "content-length")
    }
  )

  // Node's own `fetch` leaves a list with identity as it is.
  test.live.each(Object.keys(codings).filter((coding) => !coding.includes("identity")))(
    "with the coding %s, for the fetch of the promise API",
    function*(coding) {
      const { url } = yield* startCompressing(coding)
      const { dispose, fetch } = PromiseStoreAuth.make({ ...at(url), http })
      const text = yield* Effect.promise(() =>
        fetch("/orders").then((response) => response.text())
      )
      assert.strictEqual(text, "the orders")
      yield* Effect.promise(dispose)
    }
  )

  test.live("with an error status", function*() {
    const refusal = { error: "invalid_client", error_description: "unknown client" }
    const { url } = yield* startCompressing("gzip", 401, bytesOf(JSON.stringify(refusal)))
    const { provider } = yield* NodeStoreAuth.make({ ...at(url), http })
    const error = yield* Effect.flip(provider.get)
    assert(error._tag === "TokenRefusedError")
    deepStrictEqual([error.reason, error.description], ["InvalidClient", "unknown client"])
  })

  test.live("and leaves those with an unknown coding as they are", function*() {
    const { url } = yield* startCompressing("identity")
    assert.strictEqual(
      yield* Effect.provide(get(url), NodeHttp.layer(http)),
      "the orders"
    )
    const { url: other } = yield* startCompressing("x-unknown")
    const response = yield* HttpClient.get(other).pipe(
      Effect.tap(({ text }) => text),
      Effect.provide(NodeHttp.layer(http))
    )
    assert.strictEqual(response.headers["content-encoding"], "x-unknown")
  })

  test.live("and accepts one without a body: to HEAD, 204 and 304", function*() {
    const statuses: Array<number> = []
    const send = Effect.fnUntraced(function*(status: number, method: "GET" | "HEAD") {
      const { url } = yield* startCompressing("gzip", status)
      const request = HttpClientRequest.make(method)(url)
      const response = yield* HttpClient.execute(request)
      assert.strictEqual(yield* response.text, "")
      statuses.push(response.status)
    })
    yield* Effect.provide(
      Effect.all([send(200, "HEAD"), send(204, "GET"), send(204, "HEAD"), send(304, "HEAD")]),
      NodeHttp.layer(http)
    )
    deepStrictEqual(statuses, [200, 204, 204, 304])
  })

  test.live("and accepts an empty one that names a coding", function*() {
    const server = Http.createServer((_request, response) => {
      response.writeHead(201, { "Content-Encoding": "gzip", "Content-Length": 0 }).end()
    })
    const { url } = yield* listen(server)
    assert.strictEqual(yield* Effect.provide(get(url), NodeHttp.layer(http)), "")
  })

  test.live.each(Object.keys(codings))(
    "and accepts an empty one with the coding %s that comes in chunks",
    function*(coding) {
      const server = Http.createServer((_request, response) => {
        response.writeHead(200, { "Content-Encoding": coding, "Transfer-Encoding": "chunked" })
        response.end()
      })
      const { url } = yield* listen(server)
      assert.strictEqual(yield* Effect.provide(get(url), NodeHttp.layer(http)), "")
    }
  )

  test.live("and ignores what follows the end of gzip", function*() {
    const server = Http.createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" })
      response.end(Buffer.concat([Zlib.gzipSync("the orders"), Buffer.alloc(8)]))
    })
    const { url } = yield* listen(server)
    assert.strictEqual(yield* Effect.provide(get(url), NodeHttp.layer(http)), "the orders")
  })

  test.live("while they arrive", function*() {
    const zip = Zlib.createGzip({ flush: Zlib.constants.Z_SYNC_FLUSH })
    const server = Http.createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" })
      zip.pipe(response)
      zip.write("the first line\n")
    })
    const { open, url } = yield* listen(server)
    const chunk = yield* HttpClient.get(url).pipe(
      Effect.map(({ stream }) => Stream.take(stream, 1)),
      Effect.flatMap(Stream.runHead),
      Effect.map(Option.getOrThrow),
      Effect.provide(NodeHttp.layer(http))
    )
    assert.strictEqual(new TextDecoder().decode(chunk), "the first line\n")
    yield* until(() => open() === 0)
  })

  test.live("and fails if one ends too early", function*() {
    const server = Http.createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" })
      response.end(Zlib.gzipSync("the orders").subarray(0, 12))
    })
    const { url } = yield* listen(server)
    const error = yield* Effect.flip(Effect.provide(get(url), NodeHttp.layer(http)))
    assert(HttpClientError.isHttpClientError(error))
    assert.strictEqual(httpReason(error), "Decode")
  })

  test.live("and names the coding of a body that does not have it", function*() {
    const server = Http.createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" }).end("the orders")
    })
    const { url } = yield* listen(server)
    const error = yield* Effect.flip(Effect.provide(get(url), NodeHttp.layer(http)))
    assert(HttpClientError.isHttpClientError(error))
    assert.include(inspect(error.cause), "The body of the response cannot be decoded as gzip")
  })
})
