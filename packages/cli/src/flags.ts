/** The flags of each command, from which the parser, the help and the completion are built. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Fault, usage } from "./Fault.js"

/** A flag. One without `value` is a switch. */
export interface Flag {
  /** The one letter that it may have as well. */
  readonly alias?: string
  /** The name of its value in the help. */
  readonly value?: string
  /** Whether it may be repeated. */
  readonly many?: true
  /** The values that it can have. */
  readonly choices?: ReadonlyArray<string>
  /** Its line in the help. */
  readonly text: string
}

export type Flags = Readonly<Record<string, Flag>>

/** The flags that were given. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends { readonly many: true } ? ReadonlyArray<Value<F[K]>>
    : F[K] extends { readonly value: string } ? Value<F[K]> | undefined
    : boolean
}

type Value<F> = F extends { readonly choices: ReadonlyArray<infer Choice> } ? Choice : string

/** Reads the value of a flag that is a time. */
export const timeOf = (flag: string, text: string): Effect.Effect<Duration.Duration, Fault> => {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
  const millis = Number(count) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? NaN)
  return millis > 0
    ? Effect.succeed(Duration.millis(millis))
    : usage(`${flag} must be a time such as 500ms, 30s or 2m.`)
}

/** The flags of every command that needs a token. They may also precede its name. */
export const common = {
  "auth-url": { value: "URL", text: "Base URL of the token service (STORE_API_AUTH_URL)" },
  "api-url": { value: "URL", text: "Base URL of the API (STORE_API_URL)" },
  "client-id": { value: "ID", text: "Id of the client (STORE_API_CLIENT_ID)" },
  "secret-file": { value: "PATH", text: "File instead of STORE_API_CLIENT_SECRET; - is stdin" },
  // Not `--env-file`, because Node itself reads that flag, wherever it stands.
  "dotenv": { value: "PATH", text: "File of variables. Default: .env" },
  "profile": { value: "NAME", text: "Use a saved profile (STORE_API_PROFILE)" },
  "cache-dir": { value: "PATH", text: "Folder of the cache (STORE_API_TOKEN_FOLDER)" },
  "allow-insecure": { text: "Send secrets over http to other machines" },
  "verbose": { alias: "v", text: "Show each request on stderr, without secrets" }
} as const satisfies Flags

const caching = {
  "force-refresh": { text: "Get a new token, and cache it" },
  "no-cache": { text: "Neither read nor write the cache" }
} as const satisfies Flags

const json = { json: { text: "Print JSON" } } as const satisfies Flags

export const token = {
  format: { value: "FORMAT", choices: ["token", "header", "json"], text: "token (default), header or json" },
  ...caching,
  ...common
} as const satisfies Flags

export const call = {
  method: { value: "METHOD", alias: "X", text: "Default: GET, or POST with --data" },
  data: { value: "DATA", alias: "d", text: "Body; @PATH reads a file, @- or - stdin" },
  header: { value: "HEADER", alias: "H", many: true, text: "Header of the request: 'Name: value'" },
  include: { alias: "i", text: "Print status and headers before the body" },
  output: { value: "PATH", alias: "o", text: "Write the body to this file; - is stdout" },
  fail: { alias: "f", text: "Exit with code 7 for a status of 300 or more" },
  timeout: { value: "TIME", text: "Longest time for the call, such as 500ms or 30s" },
  ...caching,
  ...common
} as const satisfies Flags

export const check = { ...json, ...common } as const satisfies Flags

export const run = { ...caching, ...common } as const satisfies Flags

export const profileAdd = {
  "force": { text: "Replace a profile of this name" },
  "no-verify": { text: "Do not request a token with the settings" },
  ...common
} as const satisfies Flags

export const emulator = {
  "port": { value: "PORT", text: "Port to listen on. Default: a free one" },
  "token-life": { value: "TIME", text: "Lifetime of a token, such as 2s; default 60m" },
  "token-path": { value: "PATH", text: "Default: /v1/oauth/accesstoken" },
  "client-authentication": {
    value: "METHOD",
    many: true,
    choices: ["specification", "client_secret_post", "client_secret_basic"],
    text: "client_secret_post or client_secret_basic"
  },
  "client-id": { value: "ID", text: "Your own client. Default: demo-client" },
  "scenario": { value: "SCENARIO", many: true, text: "Faults for the next requests" },
  "responses": { value: "FILE", text: "JSON file with responses of the API" },
  "state": { value: "FILE", text: "Keep the tokens in this file" },
  "log": { value: "FORMAT", choices: ["text", "json"], text: "text (default), or json: one object per line" },
  "dotenv": { value: "FILE", text: "Write the variables to this file" },
  "lenient": { text: "Accept a charset and fields in any order" },
  "list": { text: "List the scenarios" },
  "tls": { text: "Use https, with a certificate for this run" }
} as const satisfies Flags

export const emulatorPort = {
  port: { value: "PORT", text: "Default: the port in STORE_API_AUTH_URL" }
} as const satisfies Flags

export const emulatorFail = {
  times: { value: "NUMBER", text: "Number of requests to which each fault applies" },
  ...emulatorPort
} as const satisfies Flags

export const none = {} as const satisfies Flags
