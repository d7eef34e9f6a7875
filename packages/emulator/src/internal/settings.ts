/** Options as they were given, made complete and checked. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type Client, demoClient } from "../Client.js"
import { EmulatorError } from "../EmulatorError.js"
import type { Options } from "../EmulatorOptions.js"

export interface Settings {
  readonly clients: ReadonlyArray<Client>
  readonly port: number
  readonly host: "127.0.0.1" | "::1"
  readonly basePath: string
  readonly tokenLifeMillis: number
  readonly repeatToken: boolean
  readonly header: { readonly name: string; readonly prefix: string }
  readonly tls: boolean
}

const maxTokenLife = Duration.minutes(60)

/** A value that can stand raw in the body: nothing there could tell an `&` or a line break of the value from others. */
const canBeSentRaw = (value: string) => /^[\x20-\x25\x27-\x7e]+$/.test(value)

const invalid = (option: string, problem: string) =>
  Effect.fail(new EmulatorError({ reason: "InvalidOption", option, problem }))

export const resolve = (options: Options): Effect.Effect<Settings, EmulatorError> =>
  Effect.gen(function*() {
    const { clients = [demoClient], host = "127.0.0.1", port = 0, repeatToken = false, tls = false } = options
    for (const [index, { clientId, clientSecret }] of clients.entries()) {
      for (const [name, value] of Object.entries({ clientId, clientSecret: Redacted.value(clientSecret) })) {
        if (!canBeSentRaw(value)) {
          return yield* invalid(
            `clients[${index}].${name}`,
            "must be one or more printable ASCII characters without &, because a form body holds it raw"
          )
        }
      }
    }
    if (host !== "127.0.0.1" && host !== "::1") {
      return yield* invalid("host", "must be 127.0.0.1 or ::1, because the emulator is for this machine only")
    }
    if (!Number.isInteger(port) || port < 0 || port > 65535) {
      return yield* invalid("port", "must be a whole number from 0 (a free port) to 65535")
    }
    const basePath = (options.basePath ?? "").replace(/\/+$/, "")
    if (!/^(\/[\w.~!$'()*+,;=:@%-]+)*$/.test(basePath)) {
      return yield* invalid("basePath", "must be empty or look like /store/v2: a slash, then plain path characters")
    }
    const tokenLife = Duration.decode(options.tokenLife ?? maxTokenLife)
    if (Duration.lessThanOrEqualTo(tokenLife, 0) || Duration.greaterThan(tokenLife, maxTokenLife)) {
      return yield* invalid("tokenLife", "must be more than zero and at most the specification's 60 minutes")
    }
    const header = { name: options.header?.name ?? "Authorization", prefix: options.header?.prefix ?? "Bearer " }
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header.name)) {
      return yield* invalid("header.name", "must be the name of an HTTP header, such as Authorization")
    }
    if (!/^[\x20-\x7e]*$/.test(header.prefix)) {
      return yield* invalid("header.prefix", "must be printable ASCII, such as \"Bearer \" with its space")
    }
    return { clients, host, port, basePath, tokenLifeMillis: Duration.toMillis(tokenLife), repeatToken, header, tls }
  })
