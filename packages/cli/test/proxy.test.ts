import * as Http from "node:http"
import * as Undici from "@effect/platform-node/Undici"
import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { proxyFor } from "../src/check/proxy.js"
import { listening } from "./support/listening.js"

const lists = [
  "",
  "*",
  "other.example,*",
  "store.example",
  ".store.example",
  "*.store.example",
  "auth.store.example",
  "AUTH.store.example:443",
  "auth.store.example:8443 other.example",
  "tore.example",
  "auth.store.example:80, 10.0.0.0/8"
]

const urls = [
  "https://auth.store.example",
  "http://auth.store.example",
  "https://auth.store.example:8443",
  "http://10.0.0.1"
]

describe("the proxy that a check names", () => {
  test.live("is used exactly where undici uses one", function*() {
    const tunnels: Array<string> = []
    const server = Http.createServer().on("connect", ({ url }, socket) => {
      tunnels.push(url ?? "")
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
    })
    const proxy = `http://127.0.0.1:${yield* listening(server)}`
    const direct: Array<string> = []
    for (const noProxy of lists) {
      const agent = new Undici.EnvHttpProxyAgent({
        httpProxy: proxy,
        httpsProxy: proxy,
        noProxy,
        connect: (_, callback) => {
          direct.push(noProxy)
          callback(new Error("not connected"), null)
        }
      })
      for (const url of urls) {
        const before = [tunnels.length, direct.length]
        yield* Effect.ignore(Effect.tryPromise(() => Undici.request(url, { dispatcher: agent })))
        const environment = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: noProxy }
        const expected = proxyFor(new URL(url), environment) === undefined ? [0, 1] : [1, 0]
        const after = [tunnels.length - (before[0] ?? 0), direct.length - (before[1] ?? 0)]
        deepStrictEqual(after, expected, `${url} with NO_PROXY=${noProxy}`)
      }
      yield* Effect.promise(() => agent.destroy())
    }
  })
})
