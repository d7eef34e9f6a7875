import * as Zlib from "node:zlib"
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

/** Replaces an empty body by an encoded one, because the interceptor would take it for one that ended too early. */
const withoutEmptyBodies = (handler: Undici.Dispatcher.DispatchHandler) => {
  let coding = ""
  let isEmpty = true
  return Object.assign(new Undici.DecoratorHandler(handler), {
    onResponseStart: (...parameters: Parameters<On["onResponseStart"]>) => {
      const [, status, headers] = parameters
      coding = status === 204 || status === 304
        ? ""
        : String(headers["content-encoding"] ?? "").toLowerCase()
      handler.onResponseStart?.(...parameters)
    },
    onResponseData: (...parameters: Parameters<On["onResponseData"]>) => {
      isEmpty = false
      handler.onResponseData?.(...parameters)
    },
    onResponseEnd: (...parameters: Parameters<On["onResponseEnd"]>) => {
      const encoders = coding.split(",").map((name) => encoderOf[name.trim()])
      if (isEmpty && encoders.every((encode) => encode !== undefined)) {
        const nothing: Buffer = Buffer.alloc(0)
        const encoded = encoders.reduce((bytes, encode) => encode(bytes), nothing)
        handler.onResponseData?.(parameters[0], encoded)
      }
      handler.onResponseEnd?.(...parameters)
    }
  })
}

const encoderOf: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: Zlib.gzipSync,
  "x-gzip": Zlib.gzipSync,
  deflate: Zlib.deflateSync,
  br: Zlib.brotliCompressSync
}

type On = Required<Undici.Dispatcher.DispatchHandler>

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
