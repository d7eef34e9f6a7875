/** Checks the options and adds the defaults. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { demoClient } from "../Client.js"
import { EmulatorError } from "../EmulatorError.js"
import type { ClientAuthentication, Options } from "../EmulatorOptions.js"
import type { Headers } from "../FaultModel.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof resolve>>

const formMethods: ReadonlyArray<ClientAuthentication> = ["client_secret_post", "client_secret_basic"]
const maxTokenLife = Duration.minutes(60)

const isLoopback = (host: string) => host === "127.0.0.1" || host === "::1"
export const isWhole = (number: number, lowest: number, highest: number) =>
  Number.isInteger(number) && number >= lowest && number <= highest
const isPath = (path: string) => /^(\/[\w.~!$'()*+,;=:@%-]+)*$/.test(path)
/** Some servers have a slash at the end. */
const isTokenPath = (path: string) => path.startsWith("/") && isPath(path.replace(/\/$/, ""))
const isTokenLife = (life: Duration.Duration) =>
  Duration.toMillis(life) > 0 && Duration.lessThanOrEqualTo(life, maxTokenLife)
const isHeaderName = (name: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(name)
/** As Node checks the values. */
export const areHeaders = (headers: Headers) =>
  Object.entries(headers).every(([name, values]) =>
    isHeaderName(name) && [values].flat().every((value) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value))
  )
const isPrintable = (text: string) => /^[\x20-\x7e]*$/.test(text)
/** An `&` in a value would separate fields of the form. */
const fitsInForm = (value: string) => isPrintable(value) && /^[^&]+$/.test(value)

export const unusable = (option: string, problem: string, reason: EmulatorError["reason"] = "InvalidOption") =>
  new EmulatorError({ reason, option, problem })

const check = (option: string, isUsable: boolean, problem: string) =>
  isUsable ? Effect.void : Effect.fail(unusable(option, problem))

export const resolve = (options: Options) =>
  Effect.gen(function*() {
    const { clients = [demoClient], host = "127.0.0.1", port = 0, repeatToken = false, responses = [] } = options
    const { lenient = false, steering = false, tls = false, tokens = [] } = options
    const { clientAuthentication = "specification", tokenPath = "/v1/oauth/accesstoken" } = options
    const methods = [clientAuthentication].flat()
    const isRaw = methods.join() === "specification"
    const { name = "Authorization", prefix = "Bearer " } = options.header ?? {}
    const basePath = (options.basePath ?? "").replace(/\/+$/, "")
    const tokenLife = Duration.decode(options.tokenLife ?? maxTokenLife)
    const areMethods = isRaw || methods.length > 0 && methods.every((method) => formMethods.includes(method))
    yield* check("clientAuthentication", areMethods, `must be specification, or any of ${formMethods.join(" and ")}`)
    const [fits, mustFit] = isRaw
      ? [fitsInForm, "must be one or more printable ASCII characters without &, because a form body holds it raw"]
      : [(value: string) => value !== "", "must not be empty"]
    for (const [index, { clientId, clientSecret }] of clients.entries()) {
      yield* check(`clients[${index}].clientId`, fits(clientId), mustFit)
      yield* check(`clients[${index}].clientSecret`, fits(Redacted.value(clientSecret)), mustFit)
    }
    yield* check("host", isLoopback(host), "must be 127.0.0.1 or ::1, because the emulator is for this machine only")
    yield* check("port", isWhole(port, 0, 65535), "must be a whole number from 0 (a free port) to 65535")
    yield* check("basePath", isPath(basePath), "must be empty or like /store/v2: a slash, then plain path characters")
    yield* check("tokenPath", isTokenPath(tokenPath), "must be like /oauth/token: a slash, then plain path characters")
    yield* check("tokenLife", isTokenLife(tokenLife), "must be more than zero and at most the specified 60 minutes")
    yield* check("header.name", isHeaderName(name), "must be the name of an HTTP header, such as Authorization")
    yield* check("header.prefix", isPrintable(prefix), `must be printable ASCII, such as "Bearer " with its space`)
    for (const [index, { headers = {}, path, status = 200 }] of responses.entries()) {
      yield* check(`responses[${index}].path`, isPath(path), "must be like /orders, without a query")
      yield* check(`responses[${index}].headers`, areHeaders(headers), "must be headers that HTTP can carry")
      yield* check(`responses[${index}].status`, isWhole(status, 200, 999), "must be a whole number from 200 to 999")
    }
    const used = { clients, host, lenient, methods, port, repeatToken, responses, steering, tls, tokenLife, tokens }
    return { ...used, basePath, isRaw, tokenPath: `${basePath}${tokenPath}`, header: { name, prefix } }
  })
