/** How web frameworks respond to an error of this library: by default, and with the handlers of the guide. */
import { createServer, type RequestListener } from "node:http"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError } from "@store-api/core"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { listen } from "@store-api/testing/loopback"
import { DateTime, Effect } from "effect"
import express, { type ErrorRequestHandler } from "express"
import express4 from "express4"
import fastify from "fastify"
import { Hono } from "hono"
import Koa from "koa"
import { afterAll, beforeAll, vi } from "vitest"
import {
  expressHandler,
  fastifyHandler,
  honoHandler,
  koaHandler,
  responseTo
} from "./errorHandlers.js"

const retryAt = DateTime.unsafeMake(Date.now() + 600_000)
const checkedAt = DateTime.unsafeMake(0)

/** One error of each kind, and what the handlers of the guide make of it. Koa sets the `status` of an error. */
const makeErrors = (): ReadonlyArray<
  readonly [error: Error, status: number, retryAfter: boolean]
> => [
  [
    new AccessTokenError.TokenRefusedError({
      reason: "InvalidClient",
      httpStatus: 401,
      code: "invalid_client",
      description: "unknown client"
    }),
    502,
    false
  ],
  [
    new AccessTokenError.TokenRefusedError({ reason: "InvalidRequest", httpStatus: 400 }),
    502,
    false
  ],
  [
    new AccessTokenError.TokenRefusedError({ reason: "Other", httpStatus: 404, retryAt }),
    502,
    true
  ],
  [
    new AccessTokenError.TokenRefusedError({
      reason: "RateLimited",
      httpStatus: 429,
      retryAt
    }),
    503,
    true
  ],
  [
    new AccessTokenError.TokenRefusedError({
      reason: "Unavailable",
      httpStatus: 503,
      retryAt
    }),
    503,
    true
  ],
  [
    new AccessTokenError.TokenRequestError({ reason: "Timeout", attempts: 3, retryAt }),
    504,
    true
  ],
  [
    new AccessTokenError.TokenRequestError({
      reason: "Transport",
      attempts: 3,
      code: "ENOENT",
      retryAt
    }),
    503,
    true
  ],
  [new AccessTokenError.TokenRequestError({ reason: "Proxy", attempts: 1 }), 502, false],
  [new AccessTokenError.TokenRequestError({ reason: "Closed", attempts: 0 }), 502, false],
  [
    new AccessTokenError.TokenExpiredError({
      reason: "Elapsed",
      expiredAt: checkedAt,
      checkedAt
    }),
    503,
    false
  ],
  [
    new AccessTokenError.TokenResponseError({
      problems: [{ path: "access_token", expected: "a text" }]
    }),
    502,
    false
  ],
  [
    new AccessTokenError.CredentialsError({ field: "clientSecret", reason: "is empty" }),
    502,
    false
  ],
  [
    new AccessTokenError.ConfigurationError({ option: "authUrl", reason: "is missing" }),
    500,
    false
  ],
  [
    new AccessTokenError.UntrustedOriginError({
      origin: "https://elsewhere.example",
      trusted: ["https://api.example"]
    }),
    500,
    false
  ]
]

/** Fastify serializes an error itself; Koa and Hono print it. */
const beSilent = () => vi.spyOn(console, "error").mockReturnValue(undefined)

type Send = (error: unknown) => Effect.Effect<Response>

/** Sends a request to a server whose route throws the error. */
const sendTo = (handler: RequestListener) =>
  Effect.scoped(Effect.gen(function*() {
    const { url } = yield* listen(createServer(handler))
    return yield* Effect.promise(async () => {
      const response = await fetch(url)
      return new Response(await response.text(), response)
    })
  }))

/** A server of each framework, with the handler of the guide or the default one. */
const frameworks = (isDefault: boolean): Readonly<Record<string, Send>> => ({
  "Express 4": (error) => {
    const app = express4()
    app.get("/", (_request, _response, next) => next(error))
    if (!isDefault) app.use(expressHandler)
    return sendTo(app as RequestListener)
  },
  "Express 5": (error) => {
    const app = express()
    app.get("/", () => Promise.reject(error as Error))
    if (!isDefault) app.use(expressHandler)
    return sendTo(app as RequestListener)
  },
  Fastify: (error) =>
    Effect.promise(async () => {
      const app = fastify()
      app.get("/", () => Promise.reject(error as Error))
      if (!isDefault) app.setErrorHandler(fastifyHandler)
      const { body, headers, statusCode } = await app.inject("/")
      return new Response(body, {
        status: statusCode,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, String(value)])
        )
      })
    }),
  Koa: (error) => {
    const app = new Koa()
    if (!isDefault) app.use(koaHandler)
    app.use(() => Promise.reject(error as Error))
    const respond = app.callback()
    return sendTo((request, response) => void respond(request, response))
  },
  Hono: (error) => {
    const app = new Hono()
    app.get("/", () => Promise.reject(error as Error))
    if (!isDefault) app.onError(honoHandler)
    return Effect.promise(async () => app.request("/"))
  }
})

const names = Object.keys(frameworks(true))

beforeAll(() => void beSilent())
afterAll(() => void vi.restoreAllMocks())

describe("the default error handler", () => {
  it.live.each(names)(
    "responds with 500 to each error, and shows no Effect internals: %s",
    (name) =>
      Effect.gen(function*() {
        const send = frameworks(true)[name] ?? assert.fail(name)
        for (const [error] of makeErrors()) {
          const response = yield* send(error)
          const body = yield* Effect.promise(() => response.text())
          assert.strictEqual(response.status, 500, error.message)
          assert.notMatch(body, /"?_(id|op|tag)\b|Option|Some\b|None\b|\[object/, body)
          assert.isNull(response.headers.get("retry-after"))
        }
      })
  )

  it.live.each(names)(
    "control: takes a status of an error for its own, except Hono: %s",
    (name) =>
      Effect.gen(function*() {
        const send = frameworks(true)[name] ?? assert.fail(name)
        const error = Object.assign(new Error("text"), { status: 401 })
        assert.strictEqual((yield* send(error)).status, name === "Hono" ? 500 : 401)
      })
  )
})

describe("the error handler of docs/guides/without-effect.md", () => {
  it.live.each(names)(
    "responds with 502, 503 or 504 and Retry-After: %s",
    (name) =>
      Effect.gen(function*() {
        const send = frameworks(false)[name] ?? assert.fail(name)
        for (const [error, status, retryAfter] of makeErrors()) {
          const response = yield* send(error)
          assert.strictEqual(response.status, status, error.message)
          const seconds = Number(response.headers.get("retry-after") ?? NaN)
          if (retryAfter) assert.approximately(seconds, 300, 300)
          else assert.isNaN(seconds)
          const body = yield* Effect.promise(() => response.text())
          if (status !== 500) assert.notInclude(body, error.message)
        }
      })
  )

  it.live.each(names)(
    "leaves other errors to the default handler: %s",
    (name) =>
      Effect.gen(function*() {
        const send = frameworks(false)[name] ?? assert.fail(name)
        assert.strictEqual((yield* send(new Error("a text"))).status, 500)
        const error = Object.assign(new Error("a text"), { status: 418 })
        assert.strictEqual((yield* send(error)).status, name === "Hono" ? 500 : 418)
      })
  )

  it("has no Retry-After in the past", () => {
    const error = new AccessTokenError.TokenRequestError({
      reason: "Transport",
      attempts: 3,
      retryAt: checkedAt
    })
    deepStrictEqual(responseTo(error)?.headers, {})
  })
})

it("no error has a property that a web framework takes for its response", () => {
  const reserved = ["status", "statusCode", "headers", "expose", "getResponse", "output"]
    .concat("isBoom", "statusText", "statusMessage", "body", "data", "response", "type")
  for (const [error] of makeErrors()) {
    for (const name of reserved) assert.isFalse(name in error, `${name} of ${inspect(error)}`)
  }
  assert.isTrue("status" in Object.assign(new Error("text"), { status: 401 }))
})

it.live("an error of a promise has none either, if a variable is missing", () =>
  Effect.gen(function*() {
    const error = yield* Effect.promise(() =>
      PromiseStoreAuth.make().getToken().catch((error: unknown) => error)
    )
    const send = frameworks(true)["Koa"] ?? assert.fail("Koa")
    assert.strictEqual((yield* send(error)).status, 500)
  }))

/** The types of Express 5 describe the handler of Express 4 too. */
export const typed: ErrorRequestHandler = expressHandler
