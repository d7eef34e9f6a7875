import { getEventListeners } from "node:events"
import * as Http from "node:http"
import { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { inspect } from "node:util"
import * as Zlib from "node:zlib"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError, TokenStore } from "@store-api/core"
import { type NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
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
  until,
  withVariables
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Option, Redacted } from "effect"

onThisMachine()

type Fetch = typeof globalThis.fetch

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

interface Rig {
  readonly fetch: Fetch
  readonly url: string
  /** An origin at which nothing listens. */
  readonly closed: string
  /** What the API received, without the token. */
  readonly seen: ReadonlyArray<Seen>
  readonly isGlobal: boolean
  readonly server: Server
}

type Scenario = (rig: Rig) => Promise<unknown>

type Respond = (response: Http.ServerResponse) => void

const ends =
  (status: number, body?: string | Buffer, headers: Http.OutgoingHttpHeaders = {}): Respond =>
  (response) => void response.writeHead(status, headers).end(body)

const responses: Record<string, Respond> = {
  "/cookies": (response) =>
    void response.writeHead(201, "Fine so far", {
      "Set-Cookie": ["a=1", "b=2"],
      "X-Twice": ["1", "2"]
    }).end("made"),
  "/204": ends(204),
  "/304": ends(304, undefined, { ETag: "\"x\"" }),
  "/401": ends(401, "no", { "WWW-Authenticate": "Bearer error=insufficient_scope" }),
  "/404": ends(404, "{\"error\":\"none\"}"),
  "/407": ends(407),
  "/500": ends(500, "broken"),
  "/redirect": ends(302, "moved", { Location: "/elsewhere" }),
  "/gzip": ends(200, Zlib.gzipSync("zipped"), { "Content-Encoding": "gzip" }),
  "/br": ends(200, Zlib.brotliCompressSync("brotli"), { "Content-Encoding": "br" }),
  "/deflate": ends(200, Zlib.deflateSync("deflated"), { "Content-Encoding": "deflate" }),
  "/not-gzip": ends(200, "plain", { "Content-Encoding": "gzip" }),
  "/revoked": (response) =>
    response.req.headers.authorization === "Bearer token-1"
      ? ends(401, "revoked")(response)
      : ends(200, "accepted")(response),
  "/never": () => undefined,
  "/endless": (response) => void response.writeHead(200).write("first"),
  "/reset": (response) => void response.socket?.destroy(),
  "/cut": (response) => {
    response.writeHead(200, { "Content-Length": "100" }).write("part")
    setTimeout(() => response.socket?.destroy(), 20)
  }
}

const rig = Effect.gen(function*() {
  const seen: Array<Seen> = []
  const server = yield* listen(Http.createServer((request, response) => {
    const { authorization: _, host: __, ...headers } = request.headers
    // The defaults of the two differ, which another test checks.
    if (["node", "store-api"].includes(headers["user-agent"] ?? "")) {
      Reflect.deleteProperty(headers, "user-agent")
    }
    const record = { method: request.method, url: request.url, headers, body: "" }
    const boundary = /boundary=(.*)/.exec(headers["content-type"] ?? "")?.[1] ?? "no boundary"
    if (boundary !== "no boundary") headers["content-type"] = "multipart/form-data"
    seen.push(record)
    const respond = responses[request.url?.split("?")[0] ?? ""] ??
      ((response) => void response.end("received"))
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

/** Disposes of the functions after the test. */
const made = (make: () => PromiseStoreAuth.PromiseStoreAuth) =>
  Effect.acquireRelease(Effect.sync(make), (store) => Effect.promise(() => store.dispose()))

/** The functions, with their own token endpoint. */
const make = (
  url: string,
  options: Partial<NodeStoreAuth.SecretOptions> = {},
  sharing: Partial<PromiseStoreAuth.SharedOptions> = {}
) =>
  Effect.flatMap(
    startStore,
    (auth) =>
      made(() =>
        PromiseStoreAuth.make({
          ...at(url),
          authUrl: auth.url,
          http: { proxy: "none" },
          ...options,
          ...sharing
        })
      )
  )

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
      JSON.parse(
        JSON.stringify({ outcome, seen: rig.seen }).replaceAll(String(rig.server.port), "port")
      ) as unknown
  )

/** Runs each scenario with the global `fetch` and with that of `PromiseStoreAuth`: both must come out the same. */
const scenarios = (title: string, table: Readonly<Record<string, Scenario>>) =>
  describe.concurrent(`fetch is the global fetch: ${title}`, () => {
    for (const [name, scenario] of Object.entries(table)) {
      test.live(name, function*() {
        const [expected, actual] = [yield* rig, yield* rig]
        const closed = `http://127.0.0.1:${yield* freePort}`
        const { fetch, getToken } = yield* make(actual.url, {
          client: { trustedOrigins: [closed] }
        })
        yield* Effect.promise(getToken)
        deepStrictEqual(
          yield* observe(scenario, { ...actual, fetch, closed, isGlobal: false }),
          yield* observe(scenario, {
            ...expected,
            fetch: globalThis.fetch,
            closed,
            isGlobal: true
          })
        )
      })
    }
  })

/** All that a response says. */
const told = async (response: Response) => ({
  ok: response.ok,
  redirected: response.redirected,
  status: response.status,
  statusText: response.statusText,
  type: response.type,
  url: response.url,
  isResponse: response instanceof Response,
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

const formOf = (item: string | Blob) => {
  const form = new FormData()
  form.set("item", item)
  return form
}

const methods = [
  "A B",
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
  "connect"
]

scenarios("methods and URLs", {
  ...Object.fromEntries(
    methods.map((method) => [`method ${method}`, sending("/orders", { method })])
  ),
  "a string with a query and a fragment": sending(
    "/orders?flag&x=a%20b&y=c+d&z=ä|[]#fragment"
  ),
  "a URL with a query and a fragment": async ({ fetch, url }) =>
    told(await fetch(new URL("/orders?flag&x=a%20b&y=c+d&z=ä|[]#fragment", url))),
  "a URL with a user name": async ({ fetch, url }) =>
    told(await fetch(`${url.replace("//", "//user:word@")}/orders`)),
  "a Request": async ({ fetch, url }) => {
    const request = new Request(`${url}/orders?flag#fragment`, {
      method: "PUT",
      headers: { "X-A": "1" },
      body: "text"
    })
    return { ...await told(await fetch(request)), used: request.bodyUsed }
  },
  "a Request whose method, headers and body are replaced": async ({ fetch, url }) => {
    const request = new Request(`${url}/orders`, {
      method: "PUT",
      headers: { "X-A": "1" },
      body: "text"
    })
    return told(
      await fetch(request, {
        method: "POST",
        headers: { "X-B": "2" },
        body: new URLSearchParams("a=b c")
      })
    )
  },
  "a Request with a form": async ({ fetch, url }) =>
    told(
      await fetch(new Request(`${url}/orders`, { method: "POST", body: formOf("a chair") }))
    ),
  "a Request with a cache mode": async ({ fetch, url }) =>
    told(
      await fetch(new Request(`${url}/orders`, { cache: "no-store", headers: { "X-A": "1" } }))
    ),
  "a Request that was used": async ({ fetch, url }) => {
    const request = new Request(url, { method: "POST", body: "text" })
    await request.text()
    return told(await fetch(request))
  },
  "an object that is neither a URL nor a Request": async ({ fetch }) =>
    told(await fetch({ url: "/orders" } as Request))
})

/** The DOM types lack `duplex`. */
const half = { duplex: "half" }
const ofType = { headers: { "Content-Type": "a/b" } }
const bytes = new TextEncoder().encode("bytes")

const streamOf = (text: string) => new Blob([text]).stream()

const ended = (chunk: unknown) =>
  new ReadableStream({
    start: (to) => {
      to.enqueue(chunk)
      to.close()
    }
  })

scenarios("headers and bodies", {
  "repeated headers": sending("/orders", {
    headers: [["X-A", "1"], ["x-a", "2"], ["Cookie", "a=1"], ["Accept", "x/y"]]
  }),
  "a header with a line break": sending("/orders", { headers: { "X-A": "1\n2" } }),
  "a cache mode, a mode and a referrer": sending("/orders", {
    cache: "no-store",
    mode: "same-origin",
    referrer: ""
  }),
  "an integrity that does not match": sending("/orders", { integrity: "sha256-AAAA" }),
  "text": posting(() => "ä text"),
  "empty text": posting(() => ""),
  "no body": posting(() => null),
  "text with a content type": posting(() => "{}", ofType),
  "a query": posting(() => new URLSearchParams({ item: "a chair" })),
  "a form": posting(() => formOf("a chair")),
  "a form with a file": posting(() =>
    formOf(new File(["bytes"], "a.csv", { type: "text/csv" }))
  ),
  "a blob": posting(() => new Blob(["bytes"], { type: "text/csv" })),
  "bytes with a content type": posting(() => bytes, ofType),
  "a buffer with a content type": posting(() => bytes.buffer, ofType),
  "a stream": posting(() => streamOf("streamed"), half),
  "a stream with its length": posting(() => streamOf("streamed"), {
    ...half,
    headers: { "Content-Length": "8" }
  }),
  "a stream whose duplex is missing": posting(() => streamOf("streamed")),
  "a stream that fails": posting(
    () => new ReadableStream({ start: (to) => to.error(new Error("broken")) }),
    half
  ),
  // Node sends an async iterable, which the DOM types do not know.
  "an async iterable": posting(
    () => Readable.from([bytes]) as unknown as ReadableStream,
    half
  ),
  "a stream of text": posting(() => ended("text"), half),
  "GET with a body": sending("/orders", { body: "text" }),
  "HEAD with a body": sending("/orders", { method: "HEAD", body: "text" })
})

const { "/endless": _, "/never": __, ...ending } = responses

scenarios("responses", {
  ...Object.fromEntries(Object.keys(ending).map((path) => [path, sending(path)])),
  "a redirect that is an error": sending("/redirect", { redirect: "error" }),
  "HEAD of a compressed response": sending("/gzip", { method: "HEAD" }),
  "a port where nothing listens": async ({ closed, fetch }) => told(await fetch(closed))
})

const reason = new Error("no longer needed")

/** The options of a request with a stream. */
const streamed = (body: ReadableStream): RequestInit => ({ method: "POST", body, ...half })

const endlessly = () => new ReadableStream({ start: (to) => to.enqueue(new Uint8Array(10)) })

/** Reads a response, which is aborted once `isReading` was called. */
type Read = (response: Response, isReading: () => void) => Promise<unknown>

const readText: Read = (response, isReading) => {
  isReading()
  return response.text()
}

const readParts: Read = async ({ body }, isReading) => {
  const reader = body?.getReader()
  const part = await reader?.read()
  isReading()
  return [part, await reader?.read()]
}

const own = (signal: AbortSignal | null): RequestInit => ({ signal })

/** A call that is aborted at some moment. Reports its error. Our `fetch` then also closes the connection. */
const aborted = (
  moment: "before" | "in its tick" | "received" | "response" | "reading" | "read",
  { by = reason, init, path = "/never", read = readText, request }: {
    readonly by?: unknown
    readonly path?: string
    /** The options, from the signal. Default: the signal, unless it is that of a `Request`. */
    readonly init?: (signal: AbortSignal) => RequestInit
    readonly request?: (signal: AbortSignal) => RequestInit
    readonly read?: Read
  } = {}
): Scenario =>
async (rig) => {
  const controller = new AbortController()
  const { signal } = controller
  const on = (now: typeof moment) => {
    if (now === moment) controller.abort(by)
  }
  const call = async () => {
    on("before")
    const url = rig.url + path
    const input = request === undefined ? url : new Request(url, request(signal))
    const sent = rig.fetch(
      input,
      (init ?? (request === undefined ? own : undefined))?.(signal)
    )
    on("in its tick")
    // Waits until the API has the request.
    if (moment === "received") await Effect.runPromise(until(() => rig.seen.length === 1))
    on("received")
    const response = await sent
    on("response")
    const value = await read(response, () => setImmediate(on, "reading"))
    on("read")
    return value
  }
  const outcome = await call().then(
    (value) => ({ value }),
    (error: unknown) => ({ isReason: error === reason, error: describeError(error) })
  )
  if (!rig.isGlobal && moment !== "read") {
    await Effect.runPromise(until(() => rig.server.open() === 0))
  }
  return outcome
}

scenarios("a signal", {
  "before the call": aborted("before"),
  "before a call with unusable arguments": aborted("before", {
    init: (signal) => ({ signal, method: "TRACE" })
  }),
  "of another kind": aborted("before", { init: () => own({} as AbortSignal) }),
  "in the tick of the call": aborted("in its tick"),
  "while a stream is sent": aborted("received", {
    init: (signal) => ({ ...streamed(endlessly()), signal })
  }),
  "while the response is awaited": aborted("received"),
  "without a reason": aborted("received", { by: undefined }),
  "in the tick of the response": aborted("response", { path: "/endless" }),
  "while the body is read": aborted("reading", { path: "/endless" }),
  "while the body is read in parts": aborted("reading", { path: "/endless", read: readParts }),
  "after the body was read": aborted("read", { path: "/orders" }),
  "of a timeout, while the body is read": aborted("reading", {
    path: "/endless",
    by: new DOMException("The operation was aborted due to timeout", "TimeoutError")
  }),
  "of a Request": aborted("received", { request: own }),
  "of a Request, while the body is read": aborted("reading", {
    path: "/endless",
    request: own
  }),
  "of a Request, which null replaces": aborted("read", {
    path: "/orders",
    request: () => own(AbortSignal.abort(reason)),
    init: () => own(null)
  }),
  "that replaces the signal of a Request": aborted("received", {
    request: () => own(AbortSignal.abort("another reason")),
    init: own
  })
})

/** A token endpoint that issues `token-1`, `token-2`, …, each after `issue` has resolved. */
const startIssuer = (issue: (count: number) => Promise<void> | void = () => undefined) =>
  Effect.gen(function*() {
    const requests: Array<Http.IncomingHttpHeaders> = []
    const server = yield* listen(Http.createServer((request, response) => {
      request.resume()
      const count = requests.push(request.headers)
      const token = JSON.stringify({
        access_token: `token-${count}`,
        token_type: "Bearer",
        expires_in: 3599
      })
      void Promise.resolve(issue(count)).then(() => response.end(token))
    }))
    return { url: server.url, requests }
  })

/** The functions, with an API and such a token endpoint. */
const start = ({ issue, path = "", ...options }: Partial<NodeStoreAuth.SecretOptions> & {
  readonly issue?: Parameters<typeof startIssuer>[0]
  readonly path?: string
} = {}, sharing: Partial<PromiseStoreAuth.SharedOptions> = {}) =>
  Effect.gen(function*() {
    const [api, issuer] = [yield* rig, yield* startIssuer(issue)]
    return {
      ...api,
      ...yield* make(api.url + path, { authUrl: issuer.url, ...options }, sharing),
      issuer
    }
  })

/** The error of a promise. */
const errorOf = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then(
      (value) => assert.fail(`resolved with ${String(value)}`),
      (error: unknown) => error
    )
  )

const never = new Promise<void>(() => undefined)

const neverBuilt = Layer.effect(TokenStore.TokenStore, Effect.never)

const isClosed = (error: unknown) => {
  assert.instanceOf(error, AccessTokenError.TokenRequestError)
  assert.propertyVal(error, "reason", "Closed")
}

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

test.live("fetch joins a relative URL with its query to apiUrl", function*() {
  const { fetch, seen } = yield* start({ path: "/v2/" })
  for (
    const path of ["orders?flag&x=a%20b", "/orders", "", "?a", "//elsewhere.example/orders"]
  ) {
    yield* Effect.promise(async () => (await fetch(path)).text())
  }
  deepStrictEqual(
    seen.map(({ url }) => url),
    [
      "/v2/orders?flag&x=a%20b",
      "/v2/orders",
      "/v2/",
      "/v2/?a",
      "/v2//elsewhere.example/orders"
    ]
  )
})

test.live("fetch follows no redirect", function*() {
  const { fetch, seen, url } = yield* start()
  for (
    const input of ["/redirect", new Request(`${url}/redirect`, { redirect: "follow" })]
  ) {
    const response = yield* Effect.promise(() => fetch(input))
    deepStrictEqual([response.status, response.headers.get("location")], [302, "/elsewhere"])
  }
  assert.lengthOf(seen, 2)
})

test.live("fetch sends bytes without a content type as application/octet-stream", function*() {
  const { fetch, seen } = yield* start()
  yield* Effect.promise(() => fetch("/orders", { method: "POST", body: bytes }))
  const [request] = seen
  deepStrictEqual([request?.headers["content-type"], request?.body], [
    "application/octet-stream",
    "bytes"
  ])
})

test.live("concurrent calls of getToken share one token", function*() {
  const { getToken, issuer } = yield* start()
  const [token, other] = yield* Effect.promise(() => Promise.all([getToken(), getToken()]))
  assert.strictEqual(token, other)
  assert.strictEqual(Redacted.value(AccessToken.authorization(token)), "Bearer token-1")
  assert.lengthOf(issuer.requests, 1)
})

test.live("getToken returns another token after reject", function*() {
  const { getToken, issuer, reject } = yield* start()
  const token = yield* Effect.promise(getToken)
  yield* Effect.promise(() => reject(token))
  assert.notStrictEqual(yield* Effect.promise(getToken), token)
  assert.lengthOf(issuer.requests, 2)
})

test.live("status reports the cached token without a request", function*() {
  const { getToken, issuer, status } = yield* start()
  assert.strictEqual((yield* Effect.promise(status)).state, "Empty")
  assert.isEmpty(issuer.requests)
  const token = yield* Effect.promise(getToken)
  const { expiresAt, state } = yield* Effect.promise(status)
  deepStrictEqual([state, expiresAt], ["Fresh", Option.some(token.expiresAt)])
  assert.lengthOf(issuer.requests, 1)
})

const memoryStore = Effect.map(
  TokenStore.makeMemory,
  (store) => Layer.succeed(TokenStore.TokenStore, store)
)

test.live("two of them with one store share a token", function*() {
  const store = yield* memoryStore
  const first = yield* start({}, { store })
  const second = yield* start({ authUrl: first.issuer.url, apiUrl: first.url }, { store })
  const token = yield* Effect.promise(first.getToken)
  deepStrictEqual((yield* Effect.promise(second.getToken)).value, token.value)
  assert.lengthOf(first.issuer.requests, 1)
})

test.live("one with options from the configuration uses the store", function*() {
  const store = yield* memoryStore
  const { getToken, issuer, seen, url } = yield* start({}, { store })
  const { clientId, clientSecret } = at(url)
  const configured = yield* made(() =>
    PromiseStoreAuth.make({ store, http: { proxy: "none" } })
  )
  yield* Effect.promise(getToken)
  yield* withVariables({
    STORE_API_AUTH_URL: issuer.url,
    STORE_API_URL: url,
    STORE_API_CLIENT_ID: clientId,
    STORE_API_CLIENT_SECRET: Redacted.value(clientSecret)
  })(Effect.promise(() => configured.fetch("/orders")))
  assert.lengthOf(seen, 1)
  assert.lengthOf(issuer.requests, 1)
})

const calls = [
  ["getToken", ({ getToken }: PromiseStoreAuth.PromiseStoreAuth) => getToken()],
  ["fetch", ({ fetch }: PromiseStoreAuth.PromiseStoreAuth) => fetch("/orders")]
] as const

test.live.each(calls)("%s rejects with the error of the store itself", function*([, call]) {
  const unusable = new AccessTokenError.ConfigurationError({
    option: "url",
    reason: "is not a URL"
  })
  const store = Layer.effect(TokenStore.TokenStore, Effect.fail(unusable))
  assert.strictEqual(yield* errorOf(call(yield* start({}, { store }))), unusable)
})

test.live.each(calls)(
  "%s rejects with the names of all missing variables",
  function*([, call]) {
    const error = String(yield* errorOf(call(yield* made(() => PromiseStoreAuth.make()))))
    for (const name of ["AUTH_URL", "URL", "CLIENT_ID", "CLIENT_SECRET"]) {
      assert.include(error, `STORE_API_${name}`)
    }
  }
)

test.live("fetch rejects with UntrustedOriginError for another origin", function*() {
  const { fetch } = yield* start()
  assert.instanceOf(
    yield* errorOf(fetch("http://127.0.0.1:2/orders")),
    AccessTokenError.UntrustedOriginError
  )
})

const form = formOf("a chair")
const bodies: ReadonlyArray<readonly [name: string, body: () => BodyInit | null]> = [
  ["no body", () => null],
  ["text", () => "text"],
  ["a form", () => form],
  ["a blob", () => new Blob(["text"], { type: "text/csv" })],
  ["a query", () => new URLSearchParams("a=b")],
  ["a stream", () => streamOf("text")]
]
const cases = ["init", "a Request"].flatMap((form) =>
  bodies.map(([name, body]) => ({ name, form, body }))
)
  .filter(({ form, name }) => form !== "init" || name !== "a stream")
test.live.each(cases)(
  "fetch repeats a request with $name in $form after a 401",
  function*({ body, form }) {
    const { fetch, seen, url } = yield* start()
    const init = { method: "POST", body: body(), ...half }
    const response = yield* Effect.promise(() =>
      form === "init" ? fetch("/revoked", init) : fetch(new Request(`${url}/revoked`, init))
    )
    assert.strictEqual(yield* Effect.promise(() => response.text()), "accepted")
    assert.lengthOf(seen, 2)
    deepStrictEqual(seen[1], seen[0])
  }
)

test.live("after a 401 to a stream in init, the next request uses another token", function*() {
  const { fetch, seen } = yield* start()
  const send = Effect.promise(async () => {
    const response = await fetch("/revoked", streamed(streamOf("text")))
    return [response.status, await response.text()]
  })
  deepStrictEqual([yield* send, yield* send], [[401, "revoked"], [200, "accepted"]])
  assert.lengthOf(seen, 2)
})

test.live("the signal of fetch ends only its own call of two that wait for a token", function*() {
  let issue = () => undefined as void
  const { fetch, issuer, seen } = yield* start({
    issue: () => new Promise((resolve) => issue = resolve)
  })
  const controller = new AbortController()
  const [aborted, other] = [fetch("/orders", controller), fetch("/orders")]
  yield* until(() => issuer.requests.length === 1)
  controller.abort(reason)
  assert.strictEqual(yield* errorOf(aborted), reason)
  assert.lengthOf(seen, 0)
  issue()
  assert.strictEqual((yield* Effect.promise(() => other)).status, 200)
})

test.live("the token request has no header of fetch", function*() {
  const { fetch, issuer, seen } = yield* start()
  yield* Effect.promise(() => fetch("/orders"))
  deepStrictEqual(
    [seen, issuer.requests.map((headers) => ({ headers }))].map((requests) =>
      requests.map(({ headers }) => headers["sec-fetch-mode"])
    ),
    [["cors"], [undefined]]
  )
})

test.live("the signal of fetch ends a call before the layers are built", function*() {
  const { fetch } = yield* start({}, { store: neverBuilt })
  const controller = new AbortController()
  const response = fetch("/orders", controller)
  controller.abort(reason)
  assert.strictEqual(yield* errorOf(response), reason)
})

test.live("dispose ends a call before the layers are built with Closed", function*() {
  const { dispose, fetch } = yield* start({}, { store: neverBuilt })
  const response = Effect.runPromise(errorOf(fetch("/orders")))
  yield* Effect.promise(dispose)
  isClosed(yield* Effect.promise(() => response))
})

type Given = Effect.Effect.Success<ReturnType<typeof start>>

const stops: ReadonlyArray<
  readonly [
    name: string,
    stop: (made: Given, controller: AbortController) => Promise<unknown> | void
  ]
> = [
  ["the signal of fetch", (_, controller) => controller.abort(reason)],
  ["dispose", ({ dispose }) => dispose()]
]

test.live.each(stops)("%s cancels a stream that was not sent", function*([, stop]) {
  const made = yield* start({ issue: () => never })
  const controller = new AbortController()
  const { cancelled, stream } = endless()
  const response = errorOf(
    made.fetch("/orders", { ...streamed(stream), signal: controller.signal })
  )
  const error = Effect.runPromise(response)
  yield* Effect.promise(async () => stop(made, controller))
  deepStrictEqual(cancelled.map(String), [String(yield* Effect.promise(() => error))])
})

test.live.each<readonly [string, RequestInit, string]>([
  ["its signal is aborted", { signal: AbortSignal.abort(reason) }, "/orders"],
  ["its origin is not trusted", {}, "https://elsewhere.example"]
])("fetch cancels the stream of a call if %s", function*([, init, url]) {
  const { fetch } = yield* start()
  const { cancelled, stream } = endless()
  const error = yield* errorOf(fetch(url, { ...init, ...streamed(stream) }))
  deepStrictEqual(cancelled.map(String), [String(error)])
})

test.live.each(stops)(
  "%s cancels the stream of a Request that is being read into memory",
  function*([, stop]) {
    const made = yield* start()
    const controller = new AbortController()
    const { cancelled, read, stream } = endless()
    const request = new Request(made.url, { ...streamed(stream), signal: controller.signal })
    const error = Effect.runPromise(errorOf(made.fetch(request)))
    yield* until(read)
    yield* Effect.promise(async () => stop(made, controller))
    yield* Effect.promise(() => error)
    yield* until(() => cancelled.length === 1)
  }
)

test.live.each<readonly [string, Read]>([
  ["its text", readText],
  ["the text of its clone", (response) => response.clone().text()],
  ["its body in parts", readParts]
])("ends the reading of a response, %s, after garbage collections", function*([, readOf]) {
  const { fetch, getToken, seen, url } = yield* start()
  yield* Effect.promise(getToken)
  const controller = new AbortController()
  const read = (response: Response) => readOf(response, () => undefined)
  // On a busy machine, a timeout may end before the response. Another one is then longer.
  const timed = (millis: number): Promise<unknown> =>
    fetch("/endless", own(AbortSignal.timeout(millis))).then(read, () => timed(2 * millis))
  const errors = [
    fetch("/endless", controller).then(read),
    fetch(new Request(`${url}/endless`, controller)).then(read),
    timed(250)
  ].map((body) => Effect.runPromise(errorOf(body)))
  yield* until(() => seen.length >= 3)
  for (let round = 0; round < 5; round++) {
    yield* Effect.sleep("20 millis")
    collectGarbage()
  }
  controller.abort(reason)
  deepStrictEqual(
    (yield* Effect.promise(() => Promise.all(errors))).map((error) =>
      (error as Error).message
    ),
    [
      "no longer needed",
      "no longer needed",
      "The operation was aborted due to timeout"
    ]
  )
})

test.live("the signal of fetch has no listeners after many calls", function*() {
  const { fetch } = yield* start()
  const warnings: Array<Error> = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("warning", onWarning)),
    () => Effect.sync(() => process.off("warning", onWarning))
  )
  const { signal } = new AbortController()
  yield* Effect.promise(() =>
    Promise.all(
      Array.from({ length: 50 }, async () => (await fetch("/orders", { signal })).text())
    )
  )
  yield* until(() => {
    collectGarbage()
    return getEventListeners(signal, "abort").length === 0
  })
  deepStrictEqual(warnings, [])
})

test.live("dispose ends a call that waits for a token with Closed", function*() {
  const { dispose, getToken, issuer } = yield* start({ issue: () => never })
  const waiting = Effect.runPromise(errorOf(getToken()))
  yield* until(() => issuer.requests.length === 1)
  yield* Effect.promise(dispose)
  isClosed(yield* Effect.promise(() => waiting))
})

test.live("a call after dispose fails with Closed", function*() {
  const { dispose, getToken } = yield* start()
  yield* Effect.promise(dispose)
  isClosed(yield* errorOf(getToken()))
})

test.live("dispose ends a body that is being read", function*() {
  const { dispose, fetch, server } = yield* start()
  const response = yield* Effect.promise(() => fetch("/endless"))
  const error = Effect.runPromise(errorOf(response.text()))
  yield* Effect.promise(dispose)
  assert.instanceOf(yield* Effect.promise(() => error), TypeError)
  yield* until(() => server.open() === 0)
})

test.live("transformClient applies to the requests of fetch", function*() {
  const { fetch, seen } = yield* start({
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
    seen.map(({ body, headers, url }) => [body, headers["x-a"], url]),
    Array.from({ length: 3 }, () => ["text", "1", "/500?b=2+3"])
  )
})

test.live("transformClient can limit the time until the response of fetch", function*() {
  const { fetch, server } = yield* start({
    transformClient: (client) =>
      HttpClient.transform(
        client,
        (sending, { url }) =>
          url.endsWith("/never")
            ? Effect.raceFirst(sending, Effect.delay(Effect.die("late"), "500 millis"))
            : sending
      )
  })
  assert.include(String(yield* errorOf(fetch("/never"))), "not an Error: late")
  yield* until(() => server.open() === 0)
})

test.live("transformClient may abort the call before its first step has ended", function*() {
  const { url } = yield* rig
  const controller = new AbortController()
  let interrupted = 0
  const { fetch, getToken } = yield* make(url, {
    transformClient: HttpClient.mapRequestEffect((request) => {
      if (!request.url.endsWith("/orders")) return Effect.succeed(request)
      controller.abort(reason)
      return Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
    })
  })
  // With a token, the call starts to send at once.
  yield* Effect.promise(getToken)
  assert.strictEqual(yield* errorOf(fetch("/orders", controller)), reason)
  yield* until(() => interrupted === 1)
})

test.live("transformClient cannot replace the response", function*() {
  const { fetch } = yield* start({
    transformClient: () =>
      HttpClient.make((request) =>
        Effect.succeed(
          HttpClientResponse.fromWeb(
            request,
            Response.json({ access_token: "a-token", token_type: "Bearer" })
          )
        )
      )
  })
  assert.include(String(yield* errorOf(fetch("/orders"))), "TypeError: transformClient")
})

test.live("the errors of fetch contain no token", function*() {
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
    fetch("https://elsewhere.example"),
    fetch("/redirect", { redirect: "error" }),
    fetch("/never", { signal: AbortSignal.timeout(200) }),
    ...["/cut", "/not-gzip"].map((path) => fetch(path).then((response) => response.text()))
  ]
  for (
    const error of yield* Effect.forEach(failures, errorOf, { concurrency: "unbounded" })
  ) {
    for (
      const text of [
        inspect(error, { depth: Infinity, showHidden: true }),
        JSON.stringify(error)
      ]
    ) {
      assert.notInclude(text, "token-1")
    }
  }
})

test.live("fetch uses the connections of the option http", function*() {
  const [{ server }, proxy] = [yield* rig, yield* startProxy()]
  const { fetch } = yield* make(byName(server), {
    allowInsecure: true,
    http: { proxy: new URL(proxy.url) }
  })
  assert.strictEqual((yield* Effect.promise(() => fetch("/orders"))).status, 200)
  deepStrictEqual(proxy.tunnels.map(({ to }) => to), [`${elsewhere}:${server.port}`])
})
