/** What the emulator's scenarios leave out: endpoints that repeat what they were sent, and APIs that break. */
import { Fault, type FaultModel } from "@store-api/emulator"
import { type Canary, encodings } from "./canary.js"

export type Script = (secret: Canary) => FaultModel.Script

const always = { times: Infinity } as const
const api = { on: "api", ...always } as const
const json = (value: unknown) => ({ body: JSON.stringify(value) })

/** Answers that repeat what they were sent, each without end, in whatever field of whatever dialect. */
const repeating: Readonly<Record<string, (said: string) => FaultModel.Script>> = {
  "RFC 6749": (said) =>
    Fault.status(400, { ...json({ error: said, error_description: `unknown ${said}` }), ...always }),
  "a gateway's code": (said) => Fault.status(401, { ...json({ ErrorCode: said, Error: `bad ${said}` }), ...always }),
  "a gateway's fault": (said) =>
    Fault.status(403, { ...json({ fault: { faultstring: said, detail: { errorcode: said } } }), ...always }),
  "the suite's errors": (said) =>
    Fault.status(404, { ...json({ errors: [{ errorCode: said, message: said }, { reason: said }] }), ...always }),
  "a header and the body": (said) =>
    Fault.status(405, {
      headers: { "WWW-Authenticate": `Bearer realm="${said.replace(/\s/g, "")}"` },
      body: said,
      ...always
    }),
  "the fields of a success": (said) =>
    Fault.fields({ token_type: said, expires_in: said, scope: said, issued_at: said, [said]: said }, always),
  "the body of a success": (said) => Fault.body(said, always),
  "a location": (said) =>
    Fault.redirect(302, { location: `http://127.0.0.1:9/?client_secret=${said.replace(/[^!-~]/g, "")}` }, always)
}

/** Raw everywhere, in some encodings where they matter; `echoes.test.ts` has all of them. */
const echoes = Object.fromEntries(
  Object.entries(repeating).flatMap(([place, answer], index) =>
    ["raw", ...(index % 4 === 0 ? ["percent", "base64, shifted by 2", "hex, upper case", "JSON escapes"] : [])].map((
      encoding
    ): readonly [string, Script] => [
      `token/echo in ${place}, ${encoding}`,
      ({ value }) => answer(encodings[encoding]?.(value) ?? value)
    ])
  )
)

const cut: Script = ({ value }) =>
  [20, 30, 40].map((length) =>
    Fault.status(400, json({ error: "invalid_request", error_description: `bad value "${value.slice(0, length)}…"` }))
  )

/** Faults that the emulator's scenarios show once, here without end: a slow machine may miss the first by a timeout. */
const persistent: Readonly<Record<string, Script>> = {
  "token/always dead": () => Fault.fields({ expires_in: 0 }, always),
  "token/always too large": () => Fault.body(" ".repeat(100_000), always),
  "token/always refused": () => Fault.status(401, { ...json({ error: "invalid_client" }), ...always }),
  "token/always redirected": () => Fault.redirect(307, "elsewhere", always),
  "token/always no token": () => Fault.fields({ token_type: "mac" }, always),
  "token/always self-signed": () => Fault.tls("SelfSigned", always)
}

/** Those that need an emulator with TLS. */
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
