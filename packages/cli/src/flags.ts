/** The flags that several commands have. The parser, the help and the completion are built from such tables. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type CommandError, usageError } from "./CommandError.js"

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
  /** What the completion offers instead, which it finds out when it runs. */
  readonly offers?: "profiles" | "scenarios"
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
export const timeOf = (
  flag: string,
  text: string
): Effect.Effect<Duration.Duration, CommandError> => {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
  const millis = Number(count) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? NaN)
  return millis > 0
    ? Effect.succeed(Duration.millis(millis))
    : usageError(`${flag} must be a time such as 500ms, 30s or 2m.`)
}

/** The flags of every command that needs a token. They may also precede its name. */
export const commonFlags = {
  "auth-url": { value: "URL", text: "Base URL of the token service (STORE_API_AUTH_URL)" },
  "api-url": { value: "URL", text: "Base URL of the API (STORE_API_URL)" },
  "client-id": { value: "ID", text: "Id of the client (STORE_API_CLIENT_ID)" },
  "secret-file": {
    value: "PATH",
    text: "File instead of STORE_API_CLIENT_SECRET; - is stdin"
  },
  "assertion-file": {
    value: "PATH",
    text: "Assertion file (STORE_API_CLIENT_ASSERTION_FILE)"
  },
  // Not `--env-file`, because Node itself reads that flag, wherever it stands.
  "dotenv": { value: "PATH", text: "File of variables. Default: .env" },
  "profile": {
    value: "NAME",
    offers: "profiles",
    text: "Use a saved profile (STORE_API_PROFILE)"
  },
  "cache-dir": { value: "PATH", text: "Folder of the cache (STORE_API_TOKEN_FOLDER)" },
  "allow-insecure": { text: "Send secrets over http to other machines" },
  "verbose": { alias: "v", text: "Show each request on stderr, without secrets" }
} as const satisfies Flags

/** The flags of every command that acquires a token for its own use. */
export const cacheFlags = {
  "force-refresh": { text: "Get a new token, and cache it" },
  "no-cache": { text: "Neither read nor write the cache" }
} as const satisfies Flags

export const jsonFlag = { json: { text: "Print JSON" } } as const satisfies Flags

export const noFlags = {} as const satisfies Flags
