/** The flags of each command, from which the parser, the help and the completion are built. */
import type * as EmulatorCommand from "@store-api/emulator/EmulatorCommand"

/** A flag, which may have one letter as well. */
export interface Flag extends EmulatorCommand.Flag {
  readonly alias?: string
}

export type Flags = Readonly<Record<string, Flag>>

/** The flags that were given. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends { readonly many: true } ? ReadonlyArray<string>
    : F[K] extends { readonly value: string } ? string | undefined
    : boolean
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
  query: { value: "JMESPATH", text: "Print only a part of JSON, such as items[0].id" },
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

export const none = {} as const satisfies Flags
