/** Responses, byte for byte, that an HTTP server would not send. */
import { Buffer } from "node:buffer"
import { gzipSync } from "node:zlib"

const ok = (...lines: ReadonlyArray<string>) =>
  ["HTTP/1.1 200 OK", "Content-Type: application/json", ...lines].join("\r\n")

/** The bytes that the emulator sends before it breaks off the connection. */
export const sentBefore = {
  answer: "",
  headers: ok("Cache-Con"),
  body: ok("Content-Length: 400", "", `{"access_token":"half-a-`)
}

/** A client that ignores the error in the response finds this token. */
const body =
  `{"access_token":"token-of-a-broken-response","token_type":"bearer","expires_in":3600}`

const length = (bytes: number) => `Content-Length: ${bytes}`

export const badChunks = ok("Transfer-Encoding: chunked", "", "no-size", body, "0", "", "")
export const contradictingLengths = ok(
  length(body.length),
  length(body.length - 10),
  "",
  body,
  ""
)
export const hugeHeaders = ok(
  `X-Filler: ${"x".repeat(1024 * 1024)}`,
  length(body.length),
  "",
  body,
  ""
)
export const notHttp = "220 mail.example.invalid ESMTP ready\r\n"

/** The header of a TLS record and the first bytes of the ServerHello that it announces. */
export const halfServerHello = Uint8Array.of(
  0x16,
  0x03,
  0x03,
  0x00,
  0x7a,
  0x02,
  0x00,
  0x00,
  0x76,
  0x03
)

/** A gzip stream may repeat a member, so this compresses one megabyte only once. `fail` refuses any other number. */
export const bomb = (megabytes: number): Uint8Array | undefined => {
  if (!Number.isInteger(megabytes) || megabytes < 1 || megabytes > 1024) return undefined
  const megabyte = gzipSync(Buffer.alloc(1024 * 1024))
  return Buffer.concat(Array.from({ length: megabytes }, () => megabyte))
}
