/** Checks the options and adds the defaults. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { demoClient } from "../Client.js"
import { EmulatorError } from "../EmulatorError.js"
import type { ApiResponse, ClientAuthentication, Options } from "../EmulatorOptions.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof resolve>>

const formMethods: ReadonlyArray<ClientAuthentication> = ["client_secret_post", "client_secret_basic"]
const maxTokenLife = Duration.minutes(60)

const isLoopback = (host: string) => host === "127.0.0.1" || host === "::1"
const isPort = (port: number) => Number.isInteger(port) && port >= 0 && port <= 65535
const isPath = (path: string) => /^(\/[\w.~!$'()*+,;=:@%-]+)*$/.test(path)
/** Some servers have a slash at the end. */
const isTokenPath = (path: string) => path.startsWith("/") && isPath(path.replace(/\/$/, ""))
const isTokenLife = (life: Duration.Duration) =>
  Duration.toMillis(life) > 0 && Duration.lessThanOrEqualTo(life, maxTokenLife)
const isHeaderName = (name: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(name)
const isPrintable = (text: string) => /^[\x20-\x7e]*$/.test(text)
/** An `&` in a value would separate fields of the form. */
const fitsInForm = (value: string) => isPrintable(value) && /^[^&]+$/.test(value)

const check = (option: string, isUsable: boolean, problem: string) =>
  isUsable ? Effect.void : Effect.fail(new EmulatorError({ reason: "InvalidOption", option, problem }))

export const resolve = (options: Options) =>
  Effect.gen(function*() {
    const { clients = [demoClient], host = "127.0.0.1", port = 0, repeatToken = false } = options
    const { clientAuthentication = "specification", lenient = false, steering = false, tls = false } = options
    const { responses = [], tokens = [] } = options
    const { tokenPath = "/v1/oauth/accesstoken" } = options
    const methods = [clientAuthentication].flat()
    const isRaw = methods.join() === "specification"
    const { name = "Authorization", prefix = "Bearer " } = options.header ?? {}
    const basePath = (options.basePath ?? "").replace(/\/+$/, "")
    const tokenLife = Duration.decode(options.tokenLife ?? maxTokenLife)
    yield* check(
      "clientAuthentication",
      isRaw || methods.length > 0 && methods.every((method) => formMethods.includes(method)),
      `must be specification, or one or both of ${formMethods.join(" and ")}`
    )
    const [fits, mustFit] = isRaw
      ? [fitsInForm, "must be one or more printable ASCII characters without &, because a form body holds it raw"]
      : [(value: string) => value !== "", "must not be empty"]
    for (const [index, { clientId, clientSecret }] of clients.entries()) {
      yield* check(`clients[${index}].clientId`, fits(clientId), mustFit)
      yield* check(`clients[${index}].clientSecret`, fits(Redacted.value(clientSecret)), mustFit)
    }
    yield* check("host", isLoopback(host), "must be 127.0.0.1 or ::1, because the emulator is for this machine only")
    yield* check("port", isPort(port), "must be a whole number from 0 (a free port) to 65535")
    yield* check("basePath", isPath(basePath), "must be empty or like /store/v2: a slash, then plain path characters")
    yield* check("tokenPath", isTokenPath(tokenPath), "must be like /oauth/token: a slash, then plain path characters")
    yield* check("tokenLife", isTokenLife(tokenLife), "must be more than zero and at most the specified 60 minutes")
    yield* check("header.name", isHeaderName(name), "must be the name of an HTTP header, such as Authorization")
    yield* check("header.prefix", isPrintable(prefix), `must be printable ASCII, such as "Bearer " with its space`)
    const paths = { basePath, tokenPath: `${basePath}${tokenPath}` }
    const isStatus = ({ status = 200 }: ApiResponse) => Number.isInteger(status) && status >= 200 && status <= 999
    for (const [index, response] of responses.entries()) {
      yield* check(`responses[${index}].path`, isPath(response.path), "must be like /orders, without a query")
      const areHeaders = Object.entries(response.headers ?? {}).every(([name, values]) =>
        isHeaderName(name) && [values].flat().every(isPrintable)
      )
      yield* check(`responses[${index}].headers`, areHeaders, "must be HTTP headers, with printable ASCII as values")
      yield* check(`responses[${index}].status`, isStatus(response), "must be a whole number from 200 to 999")
    }
    return {
      clients,
      port,
      host,
      ...paths,
      methods,
      tokenLife,
      repeatToken,
      header: { name, prefix },
      lenient,
      tls,
      responses,
      tokens,
      steering
    }
  })
