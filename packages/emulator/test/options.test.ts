/** Options and faults that cannot be used fail with an `EmulatorError` that names them, and never with a defect. */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  type Client,
  Emulator,
  EmulatorError,
  type EmulatorOptions,
  Fault,
  type Scenario
} from "@store-api/emulator"
import { propEffect, test } from "@store-api/testing/test"
import {
  anyWrongDuration,
  notA,
  notADuration,
  untyped,
  type Wrong
} from "@store-api/testing/wrongOptions"
import { Duration, Effect, Redacted } from "effect"
import { askToken, json } from "./utils.js"

const options: Wrong<Emulator.Options> = {
  clients: notA.list,
  port: [...notA.number, -1, 65536, 1.5, Infinity],
  host: [...notA.text, "", "0.0.0.0", "::", "localhost", "192.0.2.1"],
  basePath: [...notA.text, "store", "/store?a", "/a//b"],
  tokenPath: [...notA.text, "", "oauth/token", "/oauth/token?a"],
  clientAuthentication: [...notA.text, "canary", [], ["specification", "client_secret_post"], [
    null
  ]],
  dpop: [...notA.text, "canary", ""],
  tokenLife: [...notADuration, 0, "0 seconds", Duration.zero],
  repeatToken: notA.boolean,
  lenient: notA.boolean,
  header: notA.object,
  responses: notA.list,
  tokens: notA.list,
  steering: notA.boolean,
  tls: notA.boolean
}

const header: Wrong<NonNullable<Emulator.Options["header"]>> = {
  name: [...notA.text, undefined, "", "x token"],
  prefix: [...notA.text, "a\r\n", "\u00e9"]
}

const client: Wrong<Client.Client> = {
  clientId: [...notA.text, undefined, "", "canary&x", "canary-\u00e9"],
  clientSecret: [
    ...notA.secret,
    undefined,
    ...["", "canary&x", "canary\n"].map((text) => Redacted.make(text))
  ],
  publicKey: notA.text,
  applicationName: notA.text,
  developerEmail: notA.text
}

const response: Wrong<EmulatorOptions.ApiResponse> = {
  method: notA.text,
  path: [...notA.text, undefined, "orders", "/orders?a"],
  status: [...notA.number, 99, 1000, 200.5],
  headers: [...notA.object, { "X-A": "canary\n" }, { "": "b" }, { "X-A": [5] }],
  body: [1n, Symbol("canary"), () => "a canary"]
}

const valid = { clientId: "a", clientSecret: Redacted.make("an-invented-secret") }

/** The names in errors, and the options. */
const rows: ReadonlyArray<
  readonly [option: string, wrong: ReadonlyArray<unknown>, given: (value: unknown) => unknown]
> = [
  ["options", notA.object, (value) => value],
  ...Object.entries(options).map(([name, wrong]) =>
    [name, wrong, (value: unknown) => ({ [name]: value })] as const
  ),
  ...Object.entries(header).map(([name, wrong]) =>
    [
      `header.${name}`,
      wrong,
      (value: unknown) => ({ header: { name: "x-token", [name]: value } })
    ] as const
  ),
  ["clients[1]", notA.object, (value) => ({ clients: [valid, value] })],
  ...Object.entries(client).map(([name, wrong]) =>
    [
      `clients[1].${name}`,
      wrong,
      (value: unknown) => ({ clients: [valid, { ...valid, [name]: value }] })
    ] as const
  ),
  ["responses[0]", notA.object, (value) => ({ responses: [value] })],
  ...Object.entries(response).map(([name, wrong]) =>
    [
      `responses[0].${name}`,
      wrong,
      (value: unknown) => ({ responses: [{ path: "/orders", [name]: value }] })
    ] as const
  ),
  ["tokens[0]", [...notA.object, {}], (value) => ({ tokens: [value] })],
  [
    "clients[0].clientSecret",
    [Redacted.make("")],
    (clientSecret) => ({
      clients: [{ ...valid, clientSecret }],
      clientAuthentication: "client_secret_basic"
    })
  ]
]

/** Checks that an effect fails with an error that names the option and shows no value. */
const isRefused = (
  effect: Effect.Effect<unknown, EmulatorError.EmulatorError>,
  option: string,
  value: unknown
) =>
  Effect.map(Effect.exit(Effect.flip(effect)), (exit) => {
    assert(exit._tag === "Success", `${option} ${inspect(value)}: ${inspect(exit)}`)
    const error = exit.value
    assert.instanceOf(error, EmulatorError.EmulatorError)
    deepStrictEqual([error.reason, error.option], ["InvalidOption", option], inspect(value))
    assert.match(error.message, /^The option .{10,}[.]$/)
    assert.isTrue(error.message.startsWith(`The option ${option} `))
    assert.notInclude(String(error) + JSON.stringify(error), "canary")
  })

test.live.each(rows)(
  "an emulator does not start with a wrong value of %s",
  function*([option, wrong, given]) {
    for (const value of wrong) {
      yield* isRefused(Effect.scoped(Emulator.make(untyped(given(value)))), option, value)
    }
  }
)

propEffect(
  "with a tokenLife that is not a duration from zero",
  [anyWrongDuration],
  ([tokenLife]) =>
    isRefused(
      Effect.scoped(Emulator.make({ tokenLife: untyped(tokenLife) })),
      "tokenLife",
      tokenLife
    )
)

test.live("a tokenLife beyond 60 minutes counts as 60 minutes", function*() {
  for (const tokenLife of ["61 minutes", Duration.infinity] as const) {
    const { url } = yield* Emulator.make({ tokenLife })
    assert.strictEqual(json(yield* askToken(url))["expires_in"], 3600)
  }
})

const statuses = [...notA.number, 99, 100, 1000, 500.5].map(untyped)
const headers = response.headers.map(untyped)
const durations = notADuration.map(untyped)
const endings = [...notA.text, "canary"].map(untyped)
const bytes = notA.text.map(untyped)
const moments = ["canary", "toString", null, 5].map(untyped)

/** Steps that cannot be performed, by the function that makes them and the name in the error. */
const steps: Record<
  Exclude<keyof typeof Fault, "is" | "match">,
  Readonly<Record<string, ReadonlyArray<Fault.Fault>>>
> = {
  status: {
    "[1].status": statuses.map((status) => Fault.status(status)),
    "[1].delay": durations.map((delay) => Fault.status(500, { delay })),
    "[1].headers": headers.map((headers) => Fault.status(500, { headers })),
    "[1].body": bytes.map((body) => Fault.status(500, { body }))
  },
  body: { "[1].body": bytes.map((body) => Fault.body(body)) },
  delay: { "[1].delay": durations.map((delay) => Fault.delay(delay)) },
  hang: {
    "[1].on": ["connection", "canary", null, 5].map((on) => Fault.hang({ on: untyped(on) })),
    "[1].times": [...notA.number, 0, -1, 1.5].map((times) =>
      Fault.hang({ times: untyped(times) })
    )
  },
  fields: {
    "[1].fields": [...notA.object, { expires_in: 1n }].map((fields) =>
      Fault.fields(untyped(fields))
    ),
    "[1].headers": headers.map((headers) => Fault.fields({}, { headers }))
  },
  gzip: { "[1].times": [Fault.gzip({ times: 0 })] },
  unaskedContinue: { "[1].times": [Fault.unaskedContinue({ times: 0 })] },
  revoke: { "[1].times": [Fault.revoke({ times: 0 })] },
  forgetNonces: { "[1].times": [Fault.forgetNonces({ times: 0 })] },
  echo: { "[1].status": statuses.map((status) => Fault.echo(status)) },
  retryDate: {
    "[1].status": statuses.map((status) => Fault.retryDate(status, "1 second")),
    "[1].wait": durations.map((wait) => Fault.retryDate(503, wait))
  },
  drip: {
    "[1].every": [...durations, 0].map((every) => Fault.drip(every)),
    "[1].status": statuses.map((status) => Fault.drip(50, { status }))
  },
  flood: {
    "[1].bytes": [...notA.number, -1].map((bytes) => Fault.flood(untyped(bytes))),
    "[1].status": statuses.map((status) => Fault.flood(1, { status }))
  },
  bomb: {
    "[1].body": [...notA.number, 0, -1, 1.5, 1025, Infinity].map((megabytes) =>
      Fault.bomb(untyped(megabytes))
    )
  },
  redirect: {
    "[1].status": [...statuses, 200, 400].map((status) => Fault.redirect(status, "loop")),
    "[1].to": [...notA.object, "canary", { location: "/a\r\nX-B: canary" }, { location: 5 }]
      .map((to) => Fault.redirect(302, untyped(to)))
  },
  raw: {
    "[1].bytes": bytes.map((bytes) => Fault.raw(bytes)),
    "[1].ending": endings.map((ending) => Fault.raw("", ending))
  },
  reset: {
    "[1].times": [Fault.reset("connection", { times: 0.5 })],
    "[1].bytes": moments.map((moment) => Fault.reset(moment))
  },
  close: { "[1].bytes": moments.map((moment) => Fault.close(moment)) },
  silence: { "[1].bytes": moments.map((moment) => Fault.silence(moment)) },
  badChunks: { "[1].times": [Fault.badChunks({ times: 0 })] },
  contradictingLengths: { "[1].times": [Fault.contradictingLengths({ times: 0 })] },
  notHttp: { "[1].times": [Fault.notHttp({ times: 0 })] },
  hugeHeaders: { "[1].times": [Fault.hugeHeaders({ times: 0 })] },
  stale: { "[1].times": [Fault.stale({ times: 0 })] },
  tls: { "[1].flaw": [...notA.text, "canary"].map((flaw) => Fault.tls(untyped(flaw))) },
  unfinishedHandshake: { "[1].times": [Fault.unfinishedHandshake({ times: 0 })] }
}

test.live.each(Object.entries(steps))(
  "fail refuses a step of Fault.%s that cannot be performed",
  function*([, wrong]) {
    const { fail, pendingFaults } = yield* Emulator.make()
    for (const [field, faults] of Object.entries(wrong)) {
      for (const fault of faults) {
        yield* isRefused(fail([Fault.status(500), fault]), `script${field}`, fault)
        assert.lengthOf(yield* pendingFaults, 0)
      }
    }
  }
)

test.live("fail refuses a value that is not a step", function*() {
  const { fail, pendingFaults } = yield* Emulator.make()
  for (
    const script of [...notA.text.filter((value) => !Array.isArray(value)), undefined, {}, {
      _tag: "toString"
    }]
  ) {
    yield* isRefused(fail(untyped(script)), "script[0]", script)
  }
  for (const times of [...notA.number, 0, -1, 1.5]) {
    yield* isRefused(fail(Fault.hang(), untyped(times)), "times", times)
  }
  yield* isRefused(fail("canary" as Scenario.Name), "scenario", "canary")
  assert.lengthOf(yield* pendingFaults, 0)
})

test.live("fail refuses a fault that needs TLS if the emulator has none", function*() {
  const { fail, pendingFaults } = yield* Emulator.make()
  for (
    const fault of [Fault.tls("Expired"), "token/tls", "token/redirect-302-to-http"] as const
  ) {
    yield* isRefused(fail(fault), "tls", fault)
  }
  assert.lengthOf(yield* pendingFaults, 0)
})

test.live("fail refuses a scenario that needs another dpop or clientAuthentication", function*() {
  const { fail, pendingFaults } = yield* Emulator.make({ dpop: "nonce" })
  yield* isRefused(fail("api/dpop-wrong-clock"), "dpop", "api/dpop-wrong-clock")
  const assertion = "token/assertion-refused"
  yield* isRefused(fail(assertion), "clientAuthentication", assertion)
  assert.lengthOf(yield* pendingFaults, 0)
  yield* fail("api/dpop-stale-nonce")
  assert.lengthOf(yield* pendingFaults, 1)
})

test.live("a Retry-After of a retryDate is at most a year later", function*() {
  const { fail, url } = yield* Emulator.make()
  yield* fail(Fault.retryDate(503, Infinity))
  const { headers } = yield* askToken(url)
  const days =
    (Date.parse(String(headers["retry-after"])) - Date.parse(String(headers.date))) /
    86_400_000
  assert.closeTo(days, 365, 1)
})
