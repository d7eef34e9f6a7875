/** The flags of each command. The parser, the help and the completion are made of these tables. */

/** A flag. Without `value`, which names its value in the help, it is a switch. */
export interface Flag {
  readonly value?: string
  readonly many?: true
  readonly alias?: string
  readonly choices?: ReadonlyArray<string>
  readonly text: string
}

/** No flag sets the secret, because other users can read the arguments of a process. */
export const secretVariable = "STORE_API_CLIENT_SECRET"

export type Flags = Readonly<Record<string, Flag>>

/** The flags that were given. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends { readonly many: true } ? ReadonlyArray<string>
    : F[K] extends { readonly value: string } ? string | undefined
    : boolean
}

/** Of every command that needs a token. They may also stand before the command. */
export const common = {
  "auth-url": { value: "URL", text: "Base of the token service (STORE_API_AUTH_URL)" },
  "api-url": { value: "URL", text: "Base of the API (STORE_API_URL)" },
  "client-id": { value: "ID", text: "Id of the client (STORE_API_CLIENT_ID)" },
  "secret-file": { value: "PATH", text: "File in place of STORE_API_CLIENT_SECRET; - is stdin" },
  // Not `--env-file`, which Node also takes for itself, wherever it stands.
  "dotenv": { value: "PATH", text: "File of variables. Default: .env" },
  "profile": { value: "NAME", text: "Use a saved profile (STORE_API_PROFILE)" },
  "cache-dir": { value: "PATH", text: "Folder of the cache (STORE_API_TOKEN_FOLDER)" },
  "allow-insecure": { text: "Send secrets over http to other machines" },
  "verbose": { alias: "v", text: "Show each request on stderr, without secrets" }
} as const satisfies Flags

/** With one of them, the default profile is not used. */
export const service = ["auth-url", "api-url", "client-id", "secret-file", "dotenv"] as const

const caching = {
  "force-refresh": { text: "Get a new token, and ignore a cooldown" },
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
  output: { value: "PATH", alias: "o", text: "Write the body to this file" },
  fail: { alias: "f", text: "Exit with code 7 for a status of 400 or more" },
  timeout: { value: "TIME", text: "Longest time for the call, such as 500ms or 30s" },
  ...caching,
  ...common
} as const satisfies Flags

export const check = { ...json, ...common } as const satisfies Flags

export const status = check

export const logout = common

export const run = { ...caching, ...common } as const satisfies Flags

export const profileAdd = {
  "force": { text: "Replace a profile of this name" },
  "no-verify": { text: "Do not request a token with the settings" },
  ...common
} as const satisfies Flags

export const none = {} as const satisfies Flags

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
  "client-id": { value: "ID", text: "Client of your own. Default: demo-client" },
  "scenario": { value: "SCENARIO", many: true, text: "Faults for the next requests" },
  "dotenv": { value: "PATH", text: "Write the variables to this file" },
  "env-file": { value: "PATH", text: "The same, for a file that exists" },
  "lenient": { text: "Accept a charset and fields in any order" },
  "list": { text: "List the scenarios" },
  "tls": { text: "Use https, with a certificate for this run" }
} as const satisfies Flags
