/** The flags of `store-api emulator` and of the commands that steer it. */
import { type Flags } from "../../flags.js"

export const startFlags = {
  "port": { value: "PORT", text: "Port to listen on. Default: a free one" },
  "token-life": { value: "TIME", text: "Lifetime of a token, such as 2s; default 60m" },
  "token-path": { value: "PATH", text: "Default: /v1/oauth/accesstoken" },
  "client-authentication": {
    value: "METHOD",
    many: true,
    choices: [
      "specification",
      "client_secret_post",
      "client_secret_basic",
      "private_key_jwt",
      "none"
    ],
    text: "As in RFC 8414, such as client_secret_basic"
  },
  "public-key": { value: "FILE", text: "PEM of the client for private_key_jwt" },
  "dpop": {
    value: "NONCES",
    choices: ["no-nonce", "nonce", "nonce-per-request"],
    text: "DPoP: no-nonce, nonce, or nonce-per-request"
  },
  "client-id": { value: "ID", text: "Your own client. Default: demo-client" },
  "scenario": {
    value: "SCENARIO",
    many: true,
    offers: "scenarios",
    text: "Faults for the next requests"
  },
  "responses": { value: "FILE", text: "JSON file with responses of the API" },
  "state": { value: "FILE", text: "Keep the tokens in this file" },
  "log": {
    value: "FORMAT",
    choices: ["text", "json"],
    text: "text (default), or json: one object per line"
  },
  "dotenv": { value: "FILE", text: "Write the variables to this file" },
  "lenient": { text: "Accept a charset and fields in any order" },
  "list": { text: "List the scenarios" },
  "tls": { text: "Use https, with a certificate for this run" }
} as const satisfies Flags

export const steerFlags = {
  port: { value: "PORT", text: "Default: the port in STORE_API_AUTH_URL" }
} as const satisfies Flags

export const failFlags = {
  times: { value: "NUMBER", text: "Number of requests to which each fault applies" },
  ...steerFlags
} as const satisfies Flags
