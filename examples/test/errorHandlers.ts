/** Error handlers of web frameworks, shown in docs/guides/without-effect.md. errorHandlers.test.ts runs them. */
import { STATUS_CODES } from "node:http"
import { AccessTokenError } from "@store-api/core"
import type { ErrorRequestHandler } from "express"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { ErrorHandler } from "hono"
import { HTTPException } from "hono/http-exception"
import type { Middleware } from "koa"

const statusOf = (error: AccessTokenError.AccessTokenError) => {
  if (!AccessTokenError.isTransient(error)) return 502
  return error._tag === "TokenRequestError" && error.reason === "Timeout" ? 504 : 503
}

/** The response of your server if no token is available. Undefined for errors that have another cause. */
export const responseTo = (error: unknown) => {
  if (!AccessTokenError.isAccessTokenError(error)) return undefined
  const status = statusOf(error)
  const millis = error.retryAt === undefined ? 0 : error.retryAt.epochMillis - Date.now()
  return {
    status,
    headers: millis > 0 ? { "Retry-After": String(Math.ceil(millis / 1000)) } : {},
    // The message is for your logs.
    body: { error: STATUS_CODES[status] }
  }
}

/** `app.use(expressHandler)`, after all routes. In Express 4, an async route calls `next(error)` itself. */
export const expressHandler: ErrorRequestHandler = (error, _request, response, next) => {
  const failure = responseTo(error)
  if (failure === undefined || response.headersSent) {
    next(error)
    return
  }
  response.status(failure.status).set(failure.headers).json(failure.body)
}

/** `app.setErrorHandler(fastifyHandler)` */
export const fastifyHandler = (
  error: unknown,
  _request: FastifyRequest,
  reply: FastifyReply
) => {
  const failure = responseTo(error)
  if (failure === undefined) throw error // to the default handler
  return reply.code(failure.status).headers(failure.headers).send(failure.body)
}

/** `app.use(koaHandler)`, before all routes. */
export const koaHandler: Middleware = async (context, next) => {
  try {
    await next()
  } catch (error) {
    const failure = responseTo(error)
    if (failure === undefined) throw error // to the default handler
    context.status = failure.status
    context.set(failure.headers)
    context.body = failure.body
  }
}

/** `app.onError(honoHandler)`, which replaces the default handler. */
export const honoHandler: ErrorHandler = (error, context) => {
  const failure = responseTo(error)
  if (failure !== undefined) return Response.json(failure.body, failure)
  if (error instanceof HTTPException) return error.getResponse()
  console.error(error)
  return context.text("Internal Server Error", 500)
}
