/**
 * The flags of the commands, written down once: the parser of Node reads them where a token has to come fast, `@effect/cli`
 * everywhere else, for help and completions.
 */
import { parseArgs } from "node:util"
import * as Option from "effect/Option"

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
  "scenario": { value: "NAME", many: true, text: "A script of faults that the next requests meet" },
  "list": { text: "Lists the scenarios" },
  "tls": { text: "Speaks https, with a certificate made for this run" }
} as const satisfies Flags

export const commands = { token, call, check, status, emulator } as const

export interface Parsed<F extends Flags> {
  readonly values: Values<F>
  readonly positionals: ReadonlyArray<string>
}

/** What a line says, if it is plain: without help, and without anything that is not known. */
export const parse = <F extends Flags>(flags: F, args: ReadonlyArray<string>): Option.Option<Parsed<F>> => {
  const { positionals, tokens, values } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries<Flag>(flags).map(([name, { alias, many, value }]) => [name, {
        type: value === undefined ? "boolean" : "string",
        multiple: many === true,
        ...(alias !== undefined && { short: alias })
      }])
    ),
    strict: false,
    tokens: true
  })
  const plain = tokens.every((token) => {
    if (token.kind !== "option") return true
    if (!Object.hasOwn(flags, token.name)) return false
    const flag: Flag | undefined = flags[token.name]
    // A switch has no value; a value is not the next flag, unless it was joined with "=".
    return flag?.value === undefined
      ? token.value === undefined
      : token.value !== undefined && (token.inlineValue || token.value === "-" || !token.value.startsWith("-"))
  })
  const once = tokens.filter((token) => token.kind === "option" && flags[token.name]?.many !== true)
  const repeated = new Set(once.map((token) => token.kind === "option" ? token.name : "")).size < once.length
  return plain && !repeated
    ? Option.some({
      positionals,
      values: Object.fromEntries(
        Object.entries<Flag>(flags).map(([name, { many, value }]) => [
          name,
          many === true
            ? values[name] ?? []
            : value === undefined
            ? values[name] === true
            : Option.fromNullable(values[name])
        ])
      ) as Values<F> // by the table, which the type is made of
    })
    : Option.none()
}

/** The same line with the flags in front, each apart from its value: `@effect/cli` knows no other order. */
export const flagsFirst = (flags: Flags, args: ReadonlyArray<string>): ReadonlyArray<string> =>
  Option.match(parse(flags, args), {
    onNone: () => args,
    onSome: ({ positionals, values }) => {
      const given = Object.entries<boolean | ReadonlyArray<string> | Option.Option<string>>(values).flatMap(
        ([name, value]) =>
          typeof value === "boolean"
            ? value ? [`--${name}`] : []
            : (Option.isOption(value) ? Option.toArray(value) : value).flatMap((text) => [`--${name}`, text])
      )
      return [...given, ...positionals]
    }
  })
