import * as Stream from "node:stream"
import * as Zlib from "node:zlib"
import * as Undici from "@effect/platform-node/Undici"
import { constVoid } from "effect/Function"

type Handler = Undici.Dispatcher.DispatchHandler
type On = Required<Handler>
type Controller = Parameters<On["onResponseData"]>[0]

/** Decodes gzip, deflate, br, and zstd where Node has it. Leaves responses with another coding as they are. */
export const decode = (dispatcher: Undici.Dispatcher): Undici.Dispatcher =>
  dispatcher.compose((dispatch) => (options, handler) =>
    // The response to HEAD has the headers of one to GET, and no body to decode.
    dispatch(options, options.method === "HEAD" ? handler : decodeFor(handler))
  )

/** The interceptor of undici is experimental, warns of that, and decodes no raw deflate. */
const decodeFor = (handler: Handler): Handler => {
  const decorated = new Undici.DecoratorHandler(handler) as On
  let codings = ""
  let makers: ReadonlyArray<Make> = []
  let decoding: Decoding | undefined
  return Object.assign(new Undici.DecoratorHandler(decorated), {
    onResponseStart: (
      ...[controller, status, headers, message]: Parameters<On["onResponseStart"]>
    ) => {
      codings = [headers["content-encoding"] ?? []].flat().join()
      makers = status === 204 || status === 304 ? [] : makersOf(codings)
      const { "content-encoding": _coding, "content-length": _length, ...others } = headers
      const kept = makers.length === 0 ? headers : others
      decorated.onResponseStart(controller, status, kept, message)
    },
    onResponseData: (...[controller, chunk]: Parameters<On["onResponseData"]>) => {
      if (makers.length === 0) {
        decorated.onResponseData(controller, chunk)
        return
      }
      // Not before the first chunk: an empty body is not encoded, and the first byte tells the kind of deflate.
      decoding ??= start(makers, codings, decorated, controller, chunk)
      decoding.write(chunk)
    },
    onResponseEnd: (...[controller, trailers]: Parameters<On["onResponseEnd"]>) => {
      if (decoding === undefined) decorated.onResponseEnd(controller, trailers)
      else decoding.end(trailers)
    },
    onResponseError: (...[controller, error]: Parameters<On["onResponseError"]>) => {
      decoding?.destroy()
      decorated.onResponseError(controller, error)
    }
  })
}

interface Decoding {
  readonly write: (chunk: Buffer) => void
  readonly end: (trailers: Parameters<On["onResponseEnd"]>[1]) => void
  readonly destroy: () => void
}

const start = (
  makers: ReadonlyArray<Make>,
  codings: string,
  handler: On,
  controller: Controller,
  chunk: Buffer
): Decoding => {
  const decoders = makers.map((make, index) => make(index === 0 ? chunk : zlibHeader))
  const [first] = decoders
  const last = decoders.at(-1)
  const pause = controller.pause.bind(controller)
  const resume = controller.resume.bind(controller)
  let trailers: Parameters<On["onResponseEnd"]>[1] | undefined
  const fail = (cause: Error) => {
    const error = new Error(`The body of the response cannot be decoded as ${codings}`, {
      cause
    })
    // After its end, a request can no longer be aborted.
    if (trailers === undefined) controller.abort(error)
    else handler.onResponseError(controller, error)
  }
  // The reader of the response pauses what it gets, and a full decoder what arrives.
  Object.assign(controller, { pause: () => last?.pause(), resume: () => last?.resume() })
  first?.on("drain", resume)
  last?.on("data", (decoded: Buffer) => handler.onResponseData(controller, decoded))
  last?.on("end", () => handler.onResponseEnd(controller, trailers ?? {}))
  if (decoders.length === 1) first?.on("error", fail)
  else Stream.pipeline(decoders, (error) => error && fail(error))
  return {
    write: (chunk) => {
      if (first?.write(chunk) === false) pause()
    },
    end: (given) => {
      trailers = given
      first?.end()
    },
    destroy: () => decoders.forEach((decoder) => decoder.on("error", constVoid).destroy())
  }
}

type Make = (chunk: Uint8Array) => Stream.Transform

/** Only the coding that was applied last is looked at: what is inside another one is not known yet. */
const zlibHeader = Uint8Array.of(0x78, 0x9c)

/** Some servers leave out the header of zlib. The low half of its first byte is 8 (RFC 1950 §2.2). */
const makeInflate: Make = ([byte = 0]) =>
  byte % 16 === 8 ? Zlib.createInflate() : Zlib.createInflateRaw()

// From Node 22.15; the types are those of Node 20.
const { constants, createZstdDecompress } = Zlib as {
  readonly constants: { readonly ZSTD_d_windowLogMax?: number }
  readonly createZstdDecompress?: (options: {
    readonly params: Readonly<Record<number, number>>
  }) => Stream.Transform
}

/** A decoder keeps as many bytes as the response demands: here at most 8 MB (RFC 9659 §3). */
const longestWindow = { [constants.ZSTD_d_windowLogMax ?? 0]: 23 }

const makeZstd: Make | undefined = createZstdDecompress === undefined
  ? undefined
  : () => createZstdDecompress({ params: longestWindow })

const makerOf: Readonly<Record<string, Make | undefined>> = {
  gzip: () => Zlib.createGunzip(),
  "x-gzip": () => Zlib.createGunzip(),
  deflate: makeInflate,
  br: () => Zlib.createBrotliDecompress(),
  zstd: makeZstd
}

/** More codings than any server applies would only cost memory. */
const mostCodings = 5

/** Returns none if a coding is unknown. The last coding was applied last, so it is decoded first. */
const makersOf = (codings: string): ReadonlyArray<Make> => {
  const names = codings.toLowerCase().split(",").map((name) => name.trim()).filter((name) =>
    name !== "" && name !== "identity"
  )
  const makers = names.reverse().flatMap((name) => makerOf[name] ?? [])
  return makers.length === names.length && names.length <= mostCodings ? makers : []
}
