/** Further checks for runtimes with the modules of Node: both modules with a client of their own. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as Zlib from "node:zlib"
import { AccessTokenError, type StoreAuth } from "@store-api/core"
import { type NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { Effect } from "effect"
import { type Check, check, equal, errorOf, holds, store } from "./Check.js"

const refused = ["connections", "ca", "cert", "key", "dispatcher"] as const

/** Sends three requests at a time with each module, and returns their statuses. */
const sendWithBoth = (
  options: StoreAuth.SecretOptions & { readonly http: NodeHttp.Options }
) => {
  const three = <A, E>(request: Effect.Effect<A, E>) =>
    Effect.all([request, request, request], { concurrency: "unbounded" })
  const promised = <A>(evaluate: () => Promise<A>) =>
    Effect.tryPromise({ try: evaluate, catch: (error) => error })
  return {
    NodeStoreAuth: Effect.gen(function*() {
      const { client } = yield* NodeStoreAuth.make(options)
      return yield* three(
        Effect.flatMap(client.get("/orders"), ({ status, text }) => Effect.as(text, status))
      )
    }),
    PromiseStoreAuth: Effect.gen(function*() {
      const { dispose, fetch } = PromiseStoreAuth.make(options)
      const statuses = yield* three(promised(async () => {
        const response = await fetch("/orders")
        await response.text()
        return response.status
      }))
      yield* promised(dispose)
      return statuses
    })
  }
}

/** Bun replaces undici, so it cannot honour these options. */
const bun: ReadonlyArray<Check> = [
  check("options that need undici are refused", function*() {
    const { options } = yield* store()
    for (const name of refused) {
      // Any value, because only its presence counts.
      const http = { [name]: "a value" } as object
      const send = sendWithBoth({ ...options, http })
      for (const module of modules) {
        const error = yield* errorOf(send[module])
        holds(`the error of ${module}`, error instanceof AccessTokenError.ConfigurationError)
        holds(`the sentence names ${name}`, String(error).includes(`http.${name} `))
      }
    }
  })
]

/** Listens until the scope closes, and returns the URL. */
const listenOn = (server: Server) =>
  Effect.acquireRelease(
    Effect.async<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed(`http://127.0.0.1:${port}`))
      })
    }),
    () => Effect.sync(() => server.close())
  )

/** Counts the connections to a server that takes its time. */
const startCounting = Effect.gen(function*() {
  let connections = 0
  const server = createServer((_request, response) => {
    setTimeout(() => response.end("the orders"), 50)
  }).on("connection", () => connections++)
  return { url: yield* listenOn(server), connections: () => connections }
})

/** A frame of zstd whose text is "a", and which demands a window of this size (RFC 8878 §3.1.1). */
const frameOfZstd = (windowLog: number) =>
  Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, 9, 0, 0, 0x61])

/** Whether zstd with a window of this size reaches the reader as text, as it came, or as an error. */
const readZstd = (options: StoreAuth.SecretOptions, windowLog: number) =>
  Effect.gen(function*() {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "Content-Encoding": "zstd" }).end(frameOfZstd(windowLog))
    })
    const { client } = yield* NodeStoreAuth.make({
      ...options,
      apiUrl: yield* listenOn(server)
    })
    const { headers, text } = yield* client.get("/orders")
    yield* text
    return headers["content-encoding"] ?? (yield* text)
  }).pipe(Effect.orElseSucceed(() => "an error"))

const modules = ["NodeStoreAuth", "PromiseStoreAuth"] as const

const ok = [200, 200, 200]

/** All others honour the options, for token requests and for API requests. */
const others: ReadonlyArray<Check> = [
  check("zstd is decoded where Node has it, with a window of at most 8 MB", function*() {
    const { options } = yield* store()
    const hasZstd = "createZstdDecompress" in Zlib
    const found = [yield* readZstd(options, 23), yield* readZstd(options, 24)]
    equal("the text, or its coding", found, hasZstd ? ["a", "an error"] : ["zstd", "zstd"])
  }),
  check("http.ca is trusted", function*() {
    const { emulator: { ca }, options } = yield* store({ tls: true })
    const send = sendWithBoth({ ...options, http: { ca } })
    for (const module of modules) equal(`the statuses of ${module}`, yield* send[module], ok)
  }),
  check("http.connections limits the sockets to the API", function*() {
    const { options } = yield* store()
    for (const module of modules) {
      const { connections, url } = yield* startCounting
      const send = sendWithBoth({ ...options, apiUrl: url, http: { connections: 1 } })
      equal(`the statuses of ${module}`, yield* send[module], ok)
      equal(`the sockets of ${module}`, connections(), 1)
    }
  }),
  check("http.proxy refuses requests to the API, whose name only it can resolve", function*() {
    const { options } = yield* store()
    const proxy = createServer().on("connect", (_request, socket) => {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    })
    const url = yield* listenOn(proxy)
    const send = sendWithBoth({
      ...options,
      apiUrl: "http://api.store.example",
      allowInsecure: true,
      http: { proxy: new URL(url) }
    })
    for (const module of modules) {
      const error = yield* errorOf(send[module])
      holds(`the error of ${module} names the proxy`, String(error).includes("(407)"))
    }
  })
]

export const checks: ReadonlyArray<Check> = [
  check("NodeStoreAuth sends a request with its defaults", function*() {
    const { emulator, options } = yield* store()
    const { client } = yield* NodeStoreAuth.make(options)
    const response = yield* client.get("/orders")
    yield* response.text
    equal("the status", response.status, 200)
    equal("token requests", yield* emulator.tokenRequests, 1)
  }),
  check("PromiseStoreAuth sends a request with its defaults", function*() {
    const { emulator, options } = yield* store()
    const { dispose, fetch } = PromiseStoreAuth.make(options)
    const response = yield* Effect.promise(() => fetch("/orders"))
    yield* Effect.promise(() => response.text())
    equal("the status", response.status, 200)
    equal("token requests", yield* emulator.tokenRequests, 1)
    yield* Effect.promise(dispose)
  }),
  ..."Bun" in globalThis ? bun : others
]
