/** Answers, byte for byte, that an HTTP server would not make. */
import { Buffer } from "node:buffer"
import { gzipSync } from "node:zlib"

const lines = (...lines: ReadonlyArray<string>) => `${lines.join("\r\n")}\r\n`

const json = "Content-Type: application/json"

/** What has been sent when the emulator breaks off. */
export const upTo = {
  answer: "",
  headers: lines("HTTP/1.1 200 OK", json) + "Cache-Con",
  body: lines("HTTP/1.1 200 OK", json, "Content-Length: 400", "") + `{"access_token":"half-a-`
}

/** Whole, but for what is wrong with it: a client that looks away finds a token. */
const body = `{"access_token":"token-of-a-broken-answer","token_type":"bearer","expires_in":3600}`

export const badChunks = lines("HTTP/1.1 200 OK", json, "Transfer-Encoding: chunked", "", "no-size", body, "0", "")

export const contradictingLengths = lines(
  "HTTP/1.1 200 OK",
  json,
  `Content-Length: ${body.length}`,
  `Content-Length: ${body.length - 10}`,
  "",
  body
)

export const notHttp = lines("220 mail.example.invalid ESMTP ready")

export const hugeHeaders = lines(
  "HTTP/1.1 200 OK",
  json,
  `X-Filler: ${"x".repeat(1024 * 1024)}`,
  `Content-Length: ${body.length}`,
  "",
  body
)

/** The head of a TLS record, and the first bytes of the ServerHello that it announces. */
export const halfServerHello = Uint8Array.of(0x16, 0x03, 0x03, 0x00, 0x7a, 0x02, 0x00, 0x00, 0x76, 0x03)

/** Members of gzip may follow each other, so that one megabyte is compressed and not all of them. */
export const bomb = (megabytes: number): Uint8Array => {
  const megabyte = gzipSync(Buffer.alloc(1024 * 1024))
  return Buffer.concat(Array.from({ length: megabytes }, () => megabyte))
}
