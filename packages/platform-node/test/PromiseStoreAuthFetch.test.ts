/** Each scenario is run with the global `fetch` and with that of `PromiseStoreAuth`: both must come out the same. */
import { getEventListeners } from "node:events"
import * as Http from "node:http"
import { text } from "node:stream/consumers"
import { inspect } from "node:util"
import * as Zlib from "node:zlib"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { type NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { Effect, Layer } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, selfSigned } from "./support/certificates.js"
import {
  at,
  byName,
  collectGarbage,
  elsewhere,
  freePort,
  listen,
  onThisMachine,
  type Server,
  startProxy,
  startStore,
  startTlsStore,
  until
} from "./utils.js"

onThisMachine()

type Fetch = typeof globalThis.fetch

interface Rig {
  readonly fetch: Fetch
  readonly url: string
  /** An origin at which nothing listens. */
  readonly closed: string
  /** What the API received, without the token. */
  readonly seen: Array<unknown>
  readonly isGlobal: boolean
  readonly server: Server
}

type Scenario = (rig: Rig) => Promise<unknown>

const responses: Record<string, (response: Http.ServerResponse) => void> = {
  "/cookies": (response) =>
    void response.writeHead(201, "Fine so far", { "Set-Cookie": ["a=1", "b=2"], "X-Twice": ["1", "2"] }).end("made"),
  "/204": (response) => void response.writeHead(204).end(),
  "/304": (response) => void response.writeHead(304, { ETag: "\"x\"" }).end(),
  "/401": (response) =>
    void response.writeHead(401, { "WWW-Authenticate": "Bearer error=insufficient_scope" }).end("no"),
  "/404": (response) => void response.writeHead(404).end("{\"error\":\"none\"}"),
  "/407": (response) => void response.writeHead(407).end(),
  "/500": (response) => void response.writeHead(500).end("broken"),
  "/redirect": (response) => void response.writeHead(302, { Location: "/elsewhere" }).end("moved"),
  "/gzip": (response) => void response.writeHead(200, { "Content-Encoding": "gzip" }).end(Zlib.gzipSync("zipped")),
  "/br": (response) =>
    void response.writeHead(200, { "Content-Encoding": "br" }).end(Zlib.brotliCompressSync("brotli")),
  "/deflate": (response) =>
    void response.writeHead(200, { "Content-Encoding": "deflate" }).end(Zlib.deflateSync("deflated")),
  "/not-gzip": (response) => void response.writeHead(200, { "Content-Encoding": "gzip" }).end("plain"),
  "/never": () => undefined,
  "/endless": (response) => void response.writeHead(200).write("first"),
  "/reset": (response) => void response.socket?.destroy(),
  "/cut": (response) => {
    response.writeHead(200, { "Content-Length": "100" }).write("part")
    setTimeout(() => response.socket?.destroy(), 20)
  }
}

const rig = Effect.gen(function*() {
  const seen: Array<unknown> = []
  const server = yield* listen(Http.createServer((request, response) => {
    const { authorization: _, host: __, ...headers } = request.headers
    const record = { method: request.method, url: request.url, headers, body: "" }
    const boundary = /boundary=(.*)/.exec(headers["content-type"] ?? "")?.[1] ?? "no boundary"
    if (boundary !== "no boundary") headers["content-type"] = "multipart/form-data"
    seen.push(record)
    const respond = responses[request.url?.split("?")[0] ?? ""] ?? ((response) => void response.end("received"))
    if (request.url === "/endless" || request.url === "/never") {
      respond(response)
      return
    }
    text(request).then((body) => {
      record.body = body.replaceAll(boundary, "boundary")
      respond(response)
    }, () => undefined)
  }))
  return { url: server.url, server, seen }
})

/** The functions, with a token endpoint of their own, disposed after the test. */
const make = (url: string, options: Partial<NodeStoreAuth.SecretOptions> = {}) =>
  Effect.gen(function*() {
    const auth = yield* startStore
    return yield* Effect.acquireRelease(
      Effect.sync(() => PromiseStoreAuth.make({ ...at(url), authUrl: auth.url, http: { proxy: "none" }, ...options })),
      (store) => Effect.promise(() => store.dispose())
    )
  })

const describeError = (error: unknown): unknown =>
  error instanceof Error
    ? {
      error: `${error.name}: ${error.message}`,
      isTypeError: error instanceof TypeError,
      ...error.cause === undefined ? {} : { cause: describeError(error.cause) }
    }
    : { thrown: error }

/** What a caller and the server see. */
const observe = (scenario: Scenario, rig: Rig): Effect.Effect<unknown> =>
  Effect.map(
    Effect.promise(() => scenario(rig).catch(describeError)),
    (outcome) =>
      JSON.parse(JSON.stringify({ outcome, seen: rig.seen }).replaceAll(String(rig.server.port), "port")) as unknown
  )

const scenarios = (title: string, table: Readonly<Record<string, Scenario>>) =>
  describe.concurrent(`fetch is the global fetch: ${title}`, () => {
    for (const [name, scenario] of Object.entries(table)) {
      test.live(name, function*() {
        const [expected, actual] = [yield* rig, yield* rig]
        const closed = `http://127.0.0.1:${yield* freePort}`
        const { fetch, getToken } = yield* make(actual.url, { client: { trustedOrigins: [closed] } })
        yield* Effect.promise(getToken)
        deepStrictEqual(
          yield* observe(scenario, { ...actual, fetch, closed, isGlobal: false }),
          yield* observe(scenario, { ...expected, fetch: globalThis.fetch, closed, isGlobal: true })
        )
      })
    }
  })

/** All that a response says. */
const told = async (response: Response) => ({
  ...{ ok: response.ok, redirected: response.redirected, status: response.status, statusText: response.statusText },
  ...{ type: response.type, url: response.url, isResponse: response instanceof Response },
  headers: [...response.headers].filter(([name]) => name !== "date"),
  cookies: response.headers.getSetCookie(),
  hasBody: response.body !== null,
  clone: await response.clone().text(),
  text: await response.text(),
  bodyUsed: response.bodyUsed
})

const sending = (path: string, init?: RequestInit): Scenario => async ({ fetch, url }) =>
  told(await fetch(url + path, { redirect: "manual", ...init }))

const posting = (body: () => RequestInit["body"], init?: object): Scenario => (rig) =>
  sending("/orders", { method: "POST", body: body() as BodyInit, ...init })(rig)

const methods = [
  "GET",
  "get",
  "HEAD",
  "post",
  "PUT",
  "delete",
  "options",
  "PATCH",
  "PROPFIND",
  "TRACE",
  "connect",
  "A B"
]

scenarios("methods and URLs", {
  ...Object.fromEntries(methods.map((method) => [`method ${method}`, sending("/orders", { method })])),
  "a string with a query and a fragment": sending("/orders?flag&x=a%20b&y=c+d&z=ä|[]#fragment"),
  "a URL with a query and a fragment": async ({ fetch, url }) =>
    told(await fetch(new URL("/orders?flag&x=a%20b&y=c+d&z=ä|[]#fragment", url))),
  "a URL with a user name": async ({ fetch, url }) => told(await fetch(`${url.replace("//", "//user:word@")}/orders`)),
  "a Request": async ({ fetch, url }) => {
    const request = new Request(`${url}/orders?flag#fragment`, { method: "PUT", headers: { "X-A": "1" }, body: "text" })
    return { ...await told(await fetch(request)), used: request.bodyUsed }
  },
  "a Request whose method, headers and body are replaced": async ({ fetch, url }) =>
    told(
      await fetch(new Request(`${url}/orders`, { method: "PUT", headers: { "X-A": "1" }, body: "text" }), {
        method: "POST",
        headers: { "X-B": "2" },
        body: new URLSearchParams({ item: "a chair" })
      })
    ),
  "a Request with a form": async ({ fetch, url }) => {
    const body = new FormData()
    body.set("item", "a chair")
    return told(await fetch(new Request(`${url}/orders`, { method: "POST", body })))
  },
  "a Request with a cache mode": async ({ fetch, url }) =>
    told(await fetch(new Request(`${url}/orders`, { cache: "no-store", headers: { "X-A": "1" } }))),
  "a Request that was used": async ({ fetch, url }) => {
    const request = new Request(url, { method: "POST", body: "text" })
    await request.text()
    return told(await fetch(request))
  },
  "an object that is neither a URL nor a Request": async ({ fetch }) => told(await fetch({ url: "/orders" } as Request))
})

scenarios("headers and bodies", {
  "repeated headers": sending("/orders", {
    headers: [["X-A", "1"], ["x-a", "2"], ["Cookie", "a=1"], ["Accept", "x/y"]]
  }),
  "a header with a line break": sending("/orders", { headers: { "X-A": "1\n2" } }),
  "the cache mode, the mode and the referrer": sending("/orders", {
    cache: "no-store",
    mode: "same-origin",
    referrer: ""
  }),
  "an integrity that does not match": sending("/orders", { integrity: "sha256-AAAA" }),
  "text": posting(() => "ä text"),
  "empty text": posting(() => ""),
  "no body": posting(() => null),
  "text with a content type": posting(() => "{}", {
    headers: { "Content-Type": "application/json" }
  }),
  "a query": posting(() => new URLSearchParams({ item: "a chair" })),
  "a form": posting(() => {
    const form = new FormData()
    form.set("item", "a chair")
    form.set("file", new Blob(["bytes"], { type: "text/csv" }), "a.csv")
    return form
  }),
  "a blob": posting(() => new Blob(["bytes"], { type: "text/csv" })),
  "bytes with a content type": posting(() => new TextEncoder().encode("bytes"), { headers: { "Content-Type": "a/b" } }),
  "a buffer with a content type": posting(() => new TextEncoder().encode("bytes").buffer, {
    headers: { "Content-Type": "a/b" }
  }),
  "a stream": posting(() => new Blob(["streamed"]).stream(), { duplex: "half" }),
  "a stream with its length": posting(() => new Blob(["streamed"]).stream(), {
    duplex: "half",
    headers: { "Content-Length": "8" }
  }),
  "a stream whose duplex is missing": posting(() => new Blob(["streamed"]).stream()),
  "a stream that fails": posting(() => new ReadableStream({ start: (to) => to.error(new Error("broken")) }), {
    duplex: "half"
  }),
  "an async iterable": posting(
    // Node sends one, which the DOM types do not know.
    () =>
      (async function*() {
        yield new TextEncoder().encode("iterated")
      })() as unknown as ReadableStream,
    { duplex: "half" }
  ),
  "a stream of text": posting(
    () =>
      new ReadableStream({
        start: (to) => {
          to.enqueue("text")
          to.close()
        }
      }),
    { duplex: "half" }
  ),
  "GET with a body": sending("/orders", { body: "text" }),
  "HEAD with a body": sending("/orders", { method: "HEAD", body: "text" })
})

scenarios("responses", {
  ...Object.fromEntries(
    Object.keys(responses).filter((path) => !/never|endless/.test(path)).map((path) => [path, sending(path)])
  ),
  "a redirect that is an error": sending("/redirect", { redirect: "error" }),
  "HEAD of a compressed response": sending("/gzip", { method: "HEAD" }),
  "a port where nothing listens": async ({ closed, fetch }) => told(await fetch(closed))
})

const reason = new Error("no longer needed")

/** The options of a request with a stream. The DOM types lack `duplex`. */
const streamed = (body: ReadableStream): RequestInit => ({ ...{ method: "POST", body, duplex: "half" } })

/** Reports the error. Our `fetch` also closes the connection. */
const aborted = (abort: (rig: Rig, controller: AbortController) => Promise<unknown>): Scenario => async (rig) => {
  const outcome = await abort(rig, new AbortController()).then(
    (value) => ({ value }),
    (error: unknown) => ({ isReason: error === reason, error: describeError(error) })
  )
  if (!rig.isGlobal) await Effect.runPromise(until(() => rig.server.open() === 0))
  return outcome
}

/** Waits until the API has the request. */
const received = ({ seen }: Rig) => Effect.runPromise(until(() => seen.length === 1))

scenarios("a signal", {
  "before the call": aborted(({ fetch, url }) => fetch(`${url}/never`, { signal: AbortSignal.abort(reason) })),
  "before a call with unusable arguments": aborted(({ fetch, url }) =>
    fetch(url, { signal: AbortSignal.abort(reason), method: "TRACE" })
  ),
  "of another kind": aborted(({ fetch, url }) => fetch(url, { signal: {} as AbortSignal })),
  "in the tick of the call": aborted(({ fetch, url }, controller) => {
    const response = fetch(`${url}/never`, controller)
    controller.abort(reason)
    return response
  }),
  "while a stream is sent": aborted(async (rig, controller) => {
    const body = new ReadableStream({ start: (to) => to.enqueue(new Uint8Array(10)) })
    const response = rig.fetch(`${rig.url}/orders`, { ...streamed(body), signal: controller.signal })
    await received(rig)
    controller.abort(reason)
    return response
  }),
  "while the response is awaited": aborted(async (rig, controller) => {
    const response = rig.fetch(`${rig.url}/never`, controller)
    await received(rig)
    controller.abort(reason)
    return response
  }),
  "without a reason": aborted(async (rig, controller) => {
    const response = rig.fetch(`${rig.url}/never`, controller)
    await received(rig)
    controller.abort()
    return response
  }),
  "in the tick of the response": aborted(async ({ fetch, url }, controller) => {
    const response = await fetch(`${url}/endless`, controller)
    controller.abort(reason)
    return response.text()
  }),
  "while the body is read": aborted(async ({ fetch, url }, controller) => {
    const response = await fetch(`${url}/endless`, controller)
    setImmediate(() => controller.abort(reason))
    return response.text()
  }),
  "while the body is read in parts": aborted(async ({ fetch, url }, controller) => {
    const reader = (await fetch(`${url}/endless`, controller)).body?.getReader()
    const part = await reader?.read()
    setImmediate(() => controller.abort(reason))
    return [part, await reader?.read()]
  }),
  "after the body was read": async ({ fetch, url }) => {
    const controller = new AbortController()
    const response = await fetch(`${url}/orders`, controller)
    const body = await response.text()
    controller.abort(reason)
    return body
  },
  "of a timeout, while the body is read": aborted(async ({ fetch, url }) =>
    (await fetch(`${url}/endless`, { signal: AbortSignal.timeout(1000) })).text()
  ),
  "of a Request": aborted(async (rig, controller) => {
    const response = rig.fetch(new Request(`${rig.url}/never`, controller))
    await received(rig)
    controller.abort(reason)
    return response
  }),
  "of a Request, while the body is read": aborted(async ({ fetch, url }, controller) => {
    const response = await fetch(new Request(`${url}/endless`, controller))
    setImmediate(() => controller.abort(reason))
    return response.text()
  }),
  "of a Request, which null replaces": async ({ fetch, url }) =>
    told(await fetch(new Request(`${url}/orders`, { signal: AbortSignal.abort(reason) }), { signal: null })),
  "that replaces the signal of a Request": aborted(async (rig, controller) => {
    const request = new Request(`${rig.url}/never`, { signal: AbortSignal.abort("another reason") })
    const response = rig.fetch(request, { signal: controller.signal })
    await received(rig)
    controller.abort(reason)
    return response
  })
})

/** A token endpoint that issues `token-1`, `token-2`, …, each after `issue` has resolved. */
const startIssuer = (issue: (count: number) => Promise<void> | void = () => undefined) =>
  Effect.gen(function*() {
    const requests: Array<Http.IncomingHttpHeaders> = []
    const server = yield* listen(Http.createServer((request, response) => {
      request.resume()
      const count = requests.push(request.headers)
      const token = JSON.stringify({ access_token: `token-${count}`, token_type: "Bearer", expires_in: 3599 })
      void Promise.resolve(issue(count)).then(() => response.end(token))
    }))
    return { url: server.url, requests }
  })

/** An API that accepts every token except the first. Records each body with its content type. */
const startRevoked = Effect.gen(function*() {
  const received: Array<readonly [string | undefined, string]> = []
  const server = yield* listen(Http.createServer((request, response) => {
    void text(request).then((body) => {
      received.push([request.headers["content-type"], body])
      if (request.headers.authorization === "Bearer token-1") response.writeHead(401).end("revoked")
      else response.end("accepted")
    })
  }))
  return { url: server.url, received }
})

/** The error of a promise. */
const errorOf = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then((value) => assert.fail(`resolved with ${String(value)}`), (error: unknown) => error)
  )

const never = new Promise<void>(() => undefined)

/** A stream that does not end, whether it is read, and what it was cancelled with. */
const endless = () => {
  const cancelled: Array<unknown> = []
  let pulls = 0
  const stream = new ReadableStream({
    pull: (to) => pulls++ < 5 ? to.enqueue(new Uint8Array(10)) : never,
    cancel: (reason) => void cancelled.push(reason)
  })
  return { cancelled, stream, read: () => pulls > 2 }
}

const streamOf = (text: string) => new Blob([text]).stream()

describe("fetch differs from the global fetch", () => {
  test.live("joins a relative URL to apiUrl, and keeps its query", function*() {
    const { seen, url } = yield* rig
    const { fetch } = yield* make(`${url}/v2/`)
    for (const path of ["orders?flag&x=a%20b", "/orders", "", "?a", "//elsewhere.example/orders"]) {
      yield* Effect.promise(async () => (await fetch(path)).text())
    }
    deepStrictEqual(
      seen.map((request) => (request as { url: string }).url),
      ["/v2/orders?flag&x=a%20b", "/v2/orders", "/v2/", "/v2/?a", "/v2//elsewhere.example/orders"]
    )
  })

  test.live("follows no redirect", function*() {
    const { seen, url } = yield* rig
    const { fetch } = yield* make(url)
    for (const input of ["/redirect", new Request(`${url}/redirect`, { redirect: "follow" })]) {
      const response = yield* Effect.promise(() => fetch(input))
      deepStrictEqual([response.status, response.headers.get("location")], [302, "/elsewhere"])
    }
    assert.lengthOf(seen, 2)
  })

  test.live("sends bytes without a content type as application/octet-stream", function*() {
    const { received, url } = yield* startRevoked
    const { fetch } = yield* make(url)
    yield* Effect.promise(() => fetch("/orders", { method: "POST", body: new Uint8Array([65]) }))
    deepStrictEqual(received, [["application/octet-stream", "A"]])
  })
})

describe("make without options", () => {
  test.live("lets each call reject with the names of the variables that are missing", function*() {
    const { fetch, getToken } = PromiseStoreAuth.make()
    for (const call of [getToken, () => fetch("/orders")]) {
      const error = String(yield* errorOf(call()))
      for (const name of ["AUTH_URL", "URL", "CLIENT_ID", "CLIENT_SECRET"]) assert.include(error, `STORE_API_${name}`)
    }
  })
})

describe("fetch after a 401", () => {
  const form = new FormData()
  form.set("item", "a chair")
  const bodies: Record<string, () => BodyInit | null> = {
    "no body": () => null,
    "text": () => "text",
    "a form": () => form,
    "a blob": () => new Blob(["text"], { type: "text/csv" }),
    "a query": () => new URLSearchParams("a=b")
  }
  const posted = (url: string, body: BodyInit | null) =>
    new Request(`${url}/orders`, { ...{ method: "POST", body, duplex: "half" } })

  for (const [name, body] of [...Object.entries(bodies), ["a stream", () => streamOf("text")] as const]) {
    for (const form of name === "a stream" ? ["a Request"] : ["init", "a Request"]) {
      test.live(`repeats a request with ${name} in ${form}`, function*() {
        const [issuer, { received, url }] = [yield* startIssuer(), yield* startRevoked]
        const { fetch } = yield* make(url, { authUrl: issuer.url })
        const response = yield* Effect.promise(() =>
          form === "init" ? fetch("/orders", { method: "POST", body: body() }) : fetch(posted(url, body()))
        )
        assert.strictEqual(yield* Effect.promise(() => response.text()), "accepted")
        assert.lengthOf(received, 2)
        deepStrictEqual(received[1], received[0])
      })
    }
  }

  test.live("returns the 401 to a request with a stream in init, and uses another token next time", function*() {
    const [issuer, { received, url }] = [yield* startIssuer(), yield* startRevoked]
    const { fetch } = yield* make(url, { authUrl: issuer.url })
    const send = Effect.promise(async () => {
      const response = await fetch("/orders", streamed(streamOf("text")))
      return [response.status, await response.text()]
    })
    deepStrictEqual([yield* send, yield* send], [[401, "revoked"], [200, "accepted"]])
    assert.lengthOf(received, 2)
  })
})

describe("the signal of fetch", () => {
  test.live("ends one of two calls that wait for a token, and the other gets it", function*() {
    let issue = () => undefined as void
    const issuer = yield* startIssuer(() => new Promise((resolve) => issue = resolve))
    const { seen, url } = yield* rig
    const { fetch } = yield* make(url, { authUrl: issuer.url })
    const controller = new AbortController()
    const [aborted, other] = [fetch("/orders", controller), fetch("/orders")]
    yield* until(() => issuer.requests.length === 1)
    controller.abort(reason)
    assert.strictEqual(yield* errorOf(aborted), reason)
    assert.lengthOf(seen, 0)
    issue()
    assert.strictEqual((yield* Effect.promise(() => other)).status, 200)
    // The token request is none of the caller's: `fetch` would add this header.
    deepStrictEqual(issuer.requests.map((headers) => headers["sec-fetch-mode"]), [undefined])
  })

  test.live("ends a call that waits for another token after a 401", function*() {
    const issuer = yield* startIssuer((count) => count === 1 ? undefined : never)
    const { received, url } = yield* startRevoked
    const { fetch } = yield* make(url, { authUrl: issuer.url })
    const controller = new AbortController()
    const response = fetch("/orders", controller)
    yield* until(() => issuer.requests.length === 2)
    controller.abort(reason)
    assert.strictEqual(yield* errorOf(response), reason)
    assert.lengthOf(received, 1)
  })

  test.live("ends a call while the layers are built", function*() {
    const { url } = yield* rig
    const store = Layer.effect(TokenStore.TokenStore, Effect.never)
    const { dispose, fetch } = PromiseStoreAuth.make({ ...at(url), store })
    const controller = new AbortController()
    const [response, other] = [fetch("/orders", controller), fetch("/orders")]
    controller.abort(reason)
    assert.strictEqual(yield* errorOf(response), reason)
    const rejected = errorOf(other)
    yield* Effect.promise(dispose)
    assert.strictEqual((yield* rejected as Effect.Effect<{ _tag: string }>)._tag, "TokenRequestError")
  })

  test.live("cancels a stream that was not sent, as does every other failure", function*() {
    const { url } = yield* rig
    const { dispose, fetch } = yield* make(url, { authUrl: (yield* startIssuer(() => never)).url })
    const send = (init: RequestInit, to = url) => {
      const { cancelled, stream } = endless()
      const error = fetch(to, { ...init, ...streamed(stream) }).then(String, (error: unknown) => error)
      return Effect.map(Effect.promise(() => error), (error) => deepStrictEqual([error], cancelled))
    }
    const controller = new AbortController()
    const [before, during, untrusted, disposed] = [
      send({ signal: AbortSignal.abort(reason) }),
      send({ signal: controller.signal }),
      send({}, "https://elsewhere.example"),
      send({})
    ]
    controller.abort(reason)
    yield* Effect.all([before, during, untrusted])
    yield* Effect.promise(dispose)
    yield* disposed
  })

  test.live("cancels the stream of a Request while it is read into memory, as does dispose", function*() {
    const { url } = yield* rig
    const { dispose, fetch } = yield* make(url)
    const [aborted, disposed] = [endless(), endless()]
    const controller = new AbortController()
    const error = fetch(new Request(url, { ...streamed(aborted.stream), signal: controller.signal }))
    const other = fetch(new Request(url, streamed(disposed.stream))).then(String, String)
    yield* until(() => aborted.read() && disposed.read())
    controller.abort(reason)
    assert.strictEqual(yield* errorOf(error), reason)
    yield* until(() => aborted.cancelled[0] === reason)
    yield* Effect.promise(dispose)
    assert.include(yield* Effect.promise(() => other), "TokenRequestError")
    yield* until(() => disposed.cancelled.length === 1)
  })

  const readers: Record<string, (response: Response) => Promise<unknown>> = {
    "its text": (response) => response.text(),
    "the text of its clone": (response) => response.clone().text(),
    "its body in parts": async ({ body }) => {
      const reader = body?.getReader()
      await reader?.read()
      return reader?.read()
    }
  }
  for (const [name, read] of Object.entries(readers)) {
    test.live(`ends the reading of a response, ${name}, after garbage collections`, function*() {
      const { seen, url } = yield* rig
      const { fetch, getToken } = yield* make(url)
      yield* Effect.promise(getToken)
      const controller = new AbortController()
      const errors = [
        fetch("/endless", controller).then(read),
        fetch(new Request(`${url}/endless`, controller)).then(read),
        fetch("/endless", { signal: AbortSignal.timeout(500) }).then(read)
      ].map((body) => Effect.runPromise(errorOf(body)))
      yield* until(() => seen.length === 3)
      for (let round = 0; round < 5; round++) {
        yield* Effect.sleep("20 millis")
        collectGarbage()
      }
      controller.abort(reason)
      deepStrictEqual((yield* Effect.promise(() => Promise.all(errors))).map((error) => (error as Error).message), [
        ...["no longer needed", "no longer needed"],
        "The operation was aborted due to timeout"
      ])
    })
  }

  test.live("has no listeners and causes no warnings after many calls", function*() {
    const { url } = yield* rig
    const { fetch } = yield* make(url)
    const warnings: Array<Error> = []
    const onWarning = (warning: Error) => void warnings.push(warning)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("warning", onWarning)),
      () => Effect.sync(() => process.off("warning", onWarning))
    )
    const { signal } = new AbortController()
    yield* Effect.promise(() =>
      Promise.all(Array.from({ length: 50 }, async () => (await fetch("/orders", { signal })).text()))
    )
    yield* until(() => {
      collectGarbage()
      return getEventListeners(signal, "abort").length === 0
    })
    deepStrictEqual(warnings, [])
  })
})

describe("dispose", () => {
  test.live("ends a body that is read", function*() {
    const { server, url } = yield* rig
    const { dispose, fetch } = yield* make(url)
    const response = yield* Effect.promise(() => fetch("/endless"))
    const error = Effect.runPromise(errorOf(response.text()))
    yield* Effect.promise(dispose)
    assert.instanceOf(yield* Effect.promise(() => error), TypeError)
    yield* until(() => server.open() === 0)
  })
})

describe("transformClient", () => {
  test.live("changes and repeats the requests of fetch", function*() {
    const { seen, url } = yield* rig
    const { fetch } = yield* make(url, {
      authUrl: (yield* startIssuer()).url,
      transformClient: (client) =>
        client.pipe(
          HttpClient.mapRequest(HttpClientRequest.setHeader("X-A", "1")),
          HttpClient.mapRequest(HttpClientRequest.setUrlParam("b", "2 3")),
          HttpClient.filterStatusOk,
          HttpClient.retry({ times: 2 })
        )
    })
    const error = yield* errorOf(fetch("/500", { method: "POST", body: "text" }))
    assert.include(String(error), "500")
    deepStrictEqual(
      seen.map((request) => {
        const { body, headers, url } = request as { body: string; headers: Record<string, string>; url: string }
        return [body, headers["x-a"], url]
      }),
      Array.from({ length: 3 }, () => ["text", "1", "/500?b=2+3"])
    )
  })

  test.live("can limit the time until the response, and closes the connection", function*() {
    const { server, url } = yield* rig
    const { fetch, getToken } = yield* make(url, {
      transformClient: HttpClient.transformResponse((response) =>
        response.pipe(
          Effect.timeoutFail({ duration: "1 second", onTimeout: () => "late" as const }),
          Effect.catchIf((error): error is "late" => error === "late", () => Effect.die("late"))
        )
      )
    })
    yield* Effect.promise(getToken)
    assert.strictEqual(yield* errorOf(fetch("/never")), "late")
    yield* until(() => server.open() === 0)
  })

  test.live("may abort the call before its first step has ended", function*() {
    const { url } = yield* rig
    let controller = new AbortController()
    const { fetch } = yield* make(url, {
      transformClient: HttpClient.mapRequest((request) => {
        controller.abort(new Error("aborted by the client"))
        return request
      })
    })
    // The first call builds the layers and gets a token, so that the second one starts to send at once.
    for (let call = 0; call < 2; call++) {
      controller = new AbortController()
      assert.match(String(yield* errorOf(fetch("/orders", { signal: controller.signal }))), /aborted by the client/)
    }
  })

  test.live("cannot replace the response", function*() {
    const { url } = yield* rig
    const { fetch } = yield* make(url, {
      transformClient: () =>
        HttpClient.make((request) =>
          Effect.succeed(
            HttpClientResponse.fromWeb(request, Response.json({ access_token: "a-token", token_type: "Bearer" }))
          )
        )
    })
    assert.include(String(yield* errorOf(fetch("/orders"))), "TypeError: transformClient")
  })
})

describe("the errors of fetch", () => {
  test.live("contain no token", function*() {
    const { url } = yield* rig
    const closed = `http://127.0.0.1:${yield* freePort}`
    const { fetch } = yield* make(url, {
      client: { trustedOrigins: [closed] },
      transformClient: HttpClient.retryTransient({ times: 1 })
    })
    const failures = [
      fetch(closed),
      fetch("/reset"),
      fetch("/407"),
      fetch("/redirect", { redirect: "error" }),
      fetch("/never", { signal: AbortSignal.timeout(200) }),
      fetch("/cut").then((response) => response.text()),
      fetch("/not-gzip").then((response) => response.text()),
      fetch("https://elsewhere.example")
    ]
    for (const error of yield* Effect.forEach(failures, errorOf, { concurrency: "unbounded" })) {
      for (const text of [inspect(error, { depth: Infinity, showHidden: true }), JSON.stringify(error)]) {
        assert.notInclude(text, "an-invented-token")
      }
    }
  })
})

describe("connections of fetch", () => {
  test.live("go through the proxy", function*() {
    const [{ server }, proxy] = [yield* rig, yield* startProxy()]
    const { fetch } = yield* make(byName(server), { allowInsecure: true, http: { proxy: new URL(proxy.url) } })
    assert.strictEqual((yield* Effect.promise(() => fetch("/orders"))).status, 200)
    deepStrictEqual(proxy.tunnels.map(({ to }) => to), [`${elsewhere}:${server.port}`])
  })

  test.live.runIf(canMakeCertificates)("trust the option ca, and nothing else", function*() {
    const identity = yield* selfSigned()
    const server = yield* startTlsStore(identity)
    const trusting = yield* make(server.url, { http: { ca: identity.cert } })
    assert.strictEqual((yield* Effect.promise(() => trusting.fetch("/orders"))).status, 200)
    const error = yield* errorOf((yield* make(server.url)).fetch("/orders"))
    assert.strictEqual((error as { cause: { code: string } }).cause.code, "DEPTH_ZERO_SELF_SIGNED_CERT")
  })
})
