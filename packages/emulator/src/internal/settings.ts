/** Checks the options and adds the defaults. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Client, demoClient } from "../Client.js"
import type { ApiResponse, Options } from "../EmulatorOptions.js"
import { IssuedToken } from "../IssuedToken.js"
import * as rules from "./rules.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof resolve>>

const formMethods: ReadonlyArray<unknown> = [
  "client_secret_post",
  "client_secret_basic",
  "private_key_jwt",
  "none"
]
const maxTokenLife = Duration.minutes(60)

const isRawMethod = (methods: ReadonlyArray<unknown>) =>
  methods.length === 1 && methods[0] === "specification"

const clientAuthentication: rules.Rule = (value) => {
  const methods = [value].flat()
  const isUsable = isRawMethod(methods) ||
    (methods.length > 0 && methods.every((method) => formMethods.includes(method)))
  return isUsable ? undefined : `must be specification, or any of ${formMethods.join(", ")}`
}

const optionRules: rules.Rules<Options> = {
  clients: rules.optional(rules.list),
  port: rules.optional(
    rules.wholeNumber(0, 65535, "must be a whole number from 0 (a free port) to 65535")
  ),
  host: rules.optional(
    rules.matches(
      /^(127\.0\.0\.1|::1)$/,
      "must be 127.0.0.1 or ::1, because the emulator is for this machine only"
    )
  ),
  basePath: rules.optional(
    rules.matches(
      /^(\/[\w.~!$'()*+,;=:@%-]+)*\/*$/,
      "must be empty or like /store/v2: a slash, then plain path characters"
    )
  ),
  // Some servers have a slash at the end.
  tokenPath: rules.optional(
    rules.matches(
      /^(?=\/)(\/[\w.~!$'()*+,;=:@%-]+)*\/?$/,
      "must be like /oauth/token: a slash, then plain path characters"
    )
  ),
  clientAuthentication: rules.optional(clientAuthentication),
  dpop: rules.optional(rules.oneOf("no-nonce", "nonce", "nonce-per-request")),
  tokenLife: rules.optional(rules.positiveDuration),
  repeatToken: rules.optional(rules.boolean),
  lenient: rules.optional(rules.boolean),
  header: rules.optional(rules.record),
  responses: rules.optional(rules.list),
  tokens: rules.optional(rules.list),
  steering: rules.optional(rules.boolean),
  tls: rules.optional(rules.boolean)
}

/** An `&` in a value would separate fields of the form. */
const rawCredential = rules.matches(
  /^[\x20-\x25\x27-\x7e]+$/,
  "must be one or more printable ASCII characters without &, because a form body holds it raw"
)

const encodedCredential = rules.matches(/[^]/, "must be a text that is not empty")

const clientRules = (credential: rules.Rule, needsKey: boolean): rules.Rules<Client> => ({
  clientId: credential,
  clientSecret: rules.secret(credential),
  publicKey: needsKey
    ? rules.matches(/^-----BEGIN PUBLIC KEY-----/, "must be a public key in PEM (SPKI)")
    : rules.optional(rules.text),
  applicationName: rules.optional(rules.text),
  developerEmail: rules.optional(rules.text)
})

const headerRules: rules.Rules<NonNullable<Options["header"]>> = {
  name: rules.headerName,
  prefix: rules.optional(
    rules.matches(
      /^[\x20-\x7e]*$/,
      "must be printable ASCII, such as \"Bearer \" with its space"
    )
  )
}

const responseRules: rules.Rules<ApiResponse> = {
  method: rules.optional(rules.text),
  path: rules.matches(
    /^(\/[\w.~!$'()*+,;=:@%-]+)*$/,
    "must be like /orders, without a query"
  ),
  status: rules.optional(rules.status),
  headers: rules.optional(rules.headers),
  body: rules.optional(rules.json)
}

const isToken = Schema.is(IssuedToken)

const issuedToken: rules.Rule = (value) =>
  isToken(value) ? undefined : "must be a token of an emulator"

export const resolve = (options: Options) =>
  Effect.gen(function*() {
    yield* rules.checkRecord("options", options, optionRules, "")
    const {
      clientAuthentication = "specification",
      clients = [demoClient],
      dpop,
      responses = [],
      tokens = []
    } = options
    const {
      basePath: prefix = "",
      header = { name: "Authorization" },
      host = "127.0.0.1",
      port = 0
    } = options
    const { lenient = false, repeatToken = false, steering = false, tls = false } = options
    const { tokenLife = maxTokenLife, tokenPath = "/v1/oauth/accesstoken" } = options
    yield* rules.checkRecord("header", header, headerRules)
    const methods = [clientAuthentication].flat()
    const isRaw = isRawMethod(methods)
    const rulesOfClient = clientRules(
      isRaw ? rawCredential : encodedCredential,
      methods.includes("private_key_jwt")
    )
    yield* Effect.forEach(clients, (client, index) =>
      rules.checkRecord(`clients[${index}]`, client, rulesOfClient))
    yield* Effect.forEach(responses, (response, index) =>
      rules.checkRecord(`responses[${index}]`, response, responseRules))
    yield* Effect.forEach(tokens, (token, index) =>
      rules.check(`tokens[${index}]`, token, issuedToken))
    const basePath = prefix.replace(/\/+$/, "")
    return {
      clients,
      dpop,
      host,
      lenient,
      methods,
      port,
      repeatToken,
      responses,
      steering,
      tls,
      tokenLife: Duration.min(Duration.decode(tokenLife), maxTokenLife),
      tokens,
      basePath,
      isRaw,
      tokenPath: `${basePath}${tokenPath}`,
      header: {
        name: header.name,
        prefix: header.prefix ?? `${dpop === undefined ? "Bearer" : "DPoP"} `
      }
    }
  })
