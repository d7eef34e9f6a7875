/** Scenarios in addition to those of the emulator: endpoints that repeat the secret, and APIs that fail. */
import { Fault, type FaultModel } from "@store-api/emulator"
import { type Canary, encodings } from "./canary.js"

export type Script = (secret: Canary) => FaultModel.Script

const always = { times: Infinity } as const
const api = { on: "api", ...always } as const
const json = (value: unknown) => ({ body: JSON.stringify(value) })

/** Responses that repeat a text in the fields of each error format, for every token request. */
const repeating: Readonly<Record<string, (echo: string) => FaultModel.Script>> = {
  "RFC 6749": (echo) =>
    Fault.status(400, { ...json({ error: echo, error_description: `unknown ${echo}` }), ...always }),
  "a gateway's code": (echo) => Fault.status(401, { ...json({ ErrorCode: echo, Error: `bad ${echo}` }), ...always }),
  "a gateway's fault": (echo) =>
    Fault.status(403, { ...json({ fault: { faultstring: echo, detail: { errorcode: echo } } }), ...always }),
  "the suite's errors": (echo) =>
    Fault.status(404, { ...json({ errors: [{ errorCode: echo, message: echo }, { reason: echo }] }), ...always }),
  "a header and the body": (echo) =>
    Fault.status(405, {
      headers: { "WWW-Authenticate": `Bearer realm="${echo.replace(/\s/g, "")}"` },
      body: echo,
      ...always
    }),
  "the fields of a success": (echo) =>
    Fault.fields({ token_type: echo, expires_in: echo, scope: echo, issued_at: echo, [echo]: echo }, always),
  "the body of a success": (echo) => Fault.body(echo, always),
  "a location": (echo) =>
    Fault.redirect(302, { location: `http://127.0.0.1:9/?client_secret=${echo.replace(/[^!-~]/g, "")}` }, always)
}

/** Every response in plain text, and some of them in four encodings. `echoes.test.ts` tests all encodings. */
const echoes = Object.fromEntries(
  Object.entries(repeating).flatMap(([place, respond], index) =>
    ["raw", ...(index % 4 === 0 ? ["percent", "base64, shifted by 2", "hex, upper case", "JSON escapes"] : [])].map((
      encoding
    ): readonly [string, Script] => [
      `token/echo in ${place}, ${encoding}`,
      ({ value }) => respond(encodings[encoding]?.(value) ?? value)
    ])
  )
)

const cut: Script = ({ value }) =>
  [20, 30, 40].map((length) =>
    Fault.status(400, json({ error: "invalid_request", error_description: `bad value "${value.slice(0, length)}…"` }))
  )

/** Faults that scenarios of the emulator inject once. These repeat: a slow machine can time out before the first. */
const persistent: Readonly<Record<string, Script>> = {
  "token/always expired": () => Fault.fields({ expires_in: 0 }, always),
  "token/always too large": () => Fault.body(" ".repeat(100_000), always),
  "token/always refused": () => Fault.status(401, { ...json({ error: "invalid_client" }), ...always }),
  "token/always rate limited": () => Fault.status(429, always),
  "token/always redirected": () => Fault.redirect(307, "elsewhere", always),
  "token/always no token": () => Fault.fields({ token_type: "mac" }, always),
  "token/always self-signed": () => Fault.tls("SelfSigned", always)
}

/** The scenarios that need an emulator with TLS. */
export const overTls: ReadonlyArray<string> = ["token/always self-signed"]

export const extraScenarios: Readonly<Record<string, Script>> = {
  ...echoes,
  ...persistent,
  "token/echo, cut off": cut,
  "token/echo of the form": () => [Fault.echo(401), Fault.echo(503, always)],
  "api/reset": () => Fault.reset("answer", api),
  "api/reset-in-headers": () => Fault.reset("headers", api),
  "api/reset-in-body": () => Fault.reset("body", api),
  "api/close-in-body": () => Fault.close("body", api),
  "api/silence": () => Fault.hang(api),
  "api/silence-in-body": () => Fault.silence("body", api),
  "api/not-http": () => Fault.notHttp(api),
  "api/bad-chunks": () => Fault.badChunks(api),
  "api/gzip": () => Fault.gzip(api),
  "api/no-json": () => Fault.body("{broken", api),
  "api/nothing": () => Fault.body("", api),
  "api/500": () => Fault.status(500, { ...api, body: "<html>no</html>", headers: { "Content-Type": "text/html" } }),
  "api/401-then-reset": () => [Fault.status(401, { on: "api" }), Fault.reset("answer", api)],
  "api/401-then-500": () => [Fault.status(401, { on: "api" }), Fault.status(500, api)],
  "api/401-and-no-other-token": () => [Fault.delay("1 millis"), Fault.status(401, api), Fault.status(503, always)]
}
