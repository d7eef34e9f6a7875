/** A body of 512 MB, which takes seconds to compress. */
import * as Http from "node:http"
import * as Zlib from "node:zlib"
import { assert } from "@effect/vitest"
import { NodeStoreAuth } from "@store-api/platform-node"
import { at, listen } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"

test.live.each<[coding: string, encode: (bytes: Uint8Array) => Uint8Array]>([
  ["gzip", (bytes) => bytes],
  ["gzip, gzip", Zlib.gzipSync]
])(
  "a token response that inflates to 512 MB by %s is cut at the limit of its size",
  function*([coding, encode]) {
    const zeros = Buffer.alloc(1024 * 1024)
    const zip = Zlib.createGzip({ level: 9 })
    const chunks: Array<Buffer> = []
    zip.on("data", (chunk: Buffer) => chunks.push(chunk))
    for (let count = 0; count < 512; count++) zip.write(zeros)
    yield* Effect.async<void>((resume) => {
      zip.end(() => undefined).on("end", () => resume(Effect.void))
    })
    const bomb = encode(Buffer.concat(chunks))
    assert.isBelow(bomb.length, 1024 * 1024)
    const server = Http.createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": coding }).end(bomb)
    })
    const { url } = yield* listen(server)
    const { provider } = yield* NodeStoreAuth.make({ ...at(url), http: { proxy: "none" } })
    const before = process.memoryUsage().rss
    const error = yield* Effect.flip(provider.get)
    assert(error._tag === "TokenRequestError")
    assert.strictEqual(error.reason, "TooLarge")
    assert.isBelow((process.memoryUsage().rss - before) / 1024 / 1024, 100, "MB of memory")
  }
)
