/** The flags of the commands, written down once: `parse.ts` reads them, and `@effect/cli` makes help and completions of them. */
import type * as Option from "effect/Option"

/** A flag: a switch without `value`, which says what its value is. */
export interface Flag {
  readonly value?: string
  /** Whether it may be given again and again. */
  readonly many?: true
  readonly alias?: string
  readonly text: string
}

export type Flags = Readonly<Record<string, Flag>>

/** What was given: a switch is there or not, the others have texts. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends { readonly many: true } ? ReadonlyArray<string>
    : F[K] extends { readonly value: string } ? Option.Option<string>
    : boolean
}

/** Of every command that needs a token. */
export const common = {
  "auth-url": { value: "URL", text: "Base of the access-token service (STORE_API_AUTH_URL)" },
  "api-url": { value: "URL", text: "Base of the APIs (STORE_API_URL)" },
  "client-id": { value: "ID", text: "The client's API key (STORE_API_CLIENT_ID)" },
  "secret-file": {
    value: "PATH",
    text: "The file that holds the client's secret; else STORE_API_CLIENT_SECRET is read"
  },
  "secret-stdin": { text: "Reads the client's secret from standard input" },
  // Not `--env-file`: Node 20 takes that for its own wherever it stands, and ends when there is no such file.
  "dotenv": {
    value: "PATH",
    text: "A file of variables, after those of the environment. Default: .env, if it is there and holds the secret too"
  },
  "profile": {
    value: "NAME",
    text:
      "Takes the variables from NAME.env in the user's folder of profiles, and from nowhere else (STORE_API_PROFILE)"
  },
  "token-folder": { value: "PATH", text: "Where tokens are kept between runs (STORE_API_TOKEN_FOLDER)" },
  "allow-insecure": { text: "Lets secrets go over http to other machines" }
} as const satisfies Flags

export const token = {
  ...common,
  "header": { text: "Prints the whole header: Authorization: Bearer …" },
  "json": { text: "Prints an object: access_token, token_type, expires_at, expires_in, scope" },
  "show": { text: "Prints the token even to a terminal" },
  "refresh": { text: "Asks for a new token, whatever is stored" },
  "no-store": { text: "Neither takes a token from the store nor keeps one there" }
} as const satisfies Flags

export const call = {
  ...common,
  "header": { value: "NAME: VALUE", many: true, alias: "H", text: "A header of the request" },
  "data": { value: "TEXT", alias: "d", text: "The body of the request; - takes it from standard input" },
  "data-file": { value: "PATH", text: "The file that holds the body" },
  "include": { alias: "i", text: "Prints status and headers before the body" },
  "fail": { alias: "f", text: "Ends with 7 when the status is 400 or more" },
  "no-store": token["no-store"]
} as const satisfies Flags

export const check = common

export const status = { ...common, json: { text: "Prints an object" } } as const satisfies Flags

export const emulator = {
  "port": { value: "NUMBER", text: "The port to listen on. Default: a free one" },
  "token-life": {
    value: "TIME",
    text: "How long a token is good, such as 2s. Default and at most: 60 minutes"
  },
  "client-id": {
    value: "ID",
    text: "A client of your own, its secret from STORE_API_CLIENT_SECRET. Default: demo-client, with an invented secret"
  },
  "scenario": { value: "NAME", many: true, text: "Faults for the next requests: a name that --list prints" },
  "list": { text: "Lists the scenarios" },
  "tls": { text: "Speaks https, with a certificate made for this run" }
} as const satisfies Flags

export const commands = { token, call, check, status, emulator } as const

export type Command = keyof typeof commands

/** What else a command takes, and in what order. */
export const positionals: Readonly<Record<Command, ReadonlyArray<string>>> = {
  token: [],
  call: ["METHOD", "PATH"],
  check: ["[PATH]"],
  status: [],
  emulator: []
}
