import * as Undici from "@effect/platform-node/Undici"
import { constVoid } from "effect/Function"

/** Decodes gzip, deflate and br. Before undici 7.15, which has no interceptor for it, returns the dispatcher itself. */
export const decode = (dispatcher: Undici.Dispatcher): Undici.Dispatcher => {
  const interceptor = makeInterceptor()
  return interceptor === undefined
    ? dispatcher
    : dispatcher.compose((dispatch) => {
      const decoding = interceptor((options, handler) =>
        dispatch(options, withoutEmptyBodies(handler))
      )
      // The response to HEAD has the headers of one to GET, and no body to decode.
      return (options, handler) =>
        (options.method === "HEAD" ? dispatch : decoding)(options, handler)
    })
}

/** Removes the coding of an empty body, which the interceptor would take for one that ended too early. */
const withoutEmptyBodies = (handler: Undici.Dispatcher.DispatchHandler) =>
  Object.assign(new Undici.DecoratorHandler(handler), {
    onResponseStart: (
      ...[controller, status, headers, text]: Parameters<OnResponseStart>
    ) => {
      const isEmpty = headers["content-length"] === "0"
      const kept = Object.entries(headers).filter(([name]) =>
        !isEmpty || name !== "content-encoding"
      )
      handler.onResponseStart?.(controller, status, Object.fromEntries(kept), text)
    }
  })

type OnResponseStart = NonNullable<Undici.Dispatcher.DispatchHandler["onResponseStart"]>

/** Without undici's warning that its interceptor is experimental, about which users of this library can do nothing. */
const makeInterceptor = () => {
  const { decompress } = Undici.interceptors as Partial<typeof Undici.interceptors>
  if (decompress === undefined) return undefined
  const emitWarning: unknown = Reflect.get(process, "emitWarning")
  process.emitWarning = constVoid
  const interceptor = decompress({ skipErrorResponses: false })
  Reflect.set(process, "emitWarning", emitWarning)
  return interceptor
}
