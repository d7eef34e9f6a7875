/** The flags that start an emulator, from which the parsers, the help and the completion are built. */
export const flags = {
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
  "env-file": { value: "FILE", text: "The same, for a file that exists" },
  "lenient": { text: "Accept a charset and fields in any order" },
  "list": { text: "List the scenarios" },
  "tls": { text: "Use https, with a certificate for this run" }
} as const

/** The values of the flags of a table. */
export type Values<F> = {
  readonly [K in keyof F]?: F[K] extends { readonly many: true } ? ReadonlyArray<string> | undefined
    : F[K] extends { readonly value: string } ? string | undefined
    : boolean | undefined
}

export type Flags = Values<typeof flags>
