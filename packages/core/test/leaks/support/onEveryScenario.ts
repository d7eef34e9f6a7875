/** Declares the tests of one HTTP client: no output of any scenario contains the secret or a token. */
import { inspect } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, type FaultModel, Scenario } from "@store-api/emulator"
import { Metric } from "effect"
import type { Client } from "../../support/clients.js"
import type { Output } from "../../support/renderings.js"
import { test } from "../../support/test.js"
import { watchConsole } from "../../support/watchProcess.js"
import { type Canary, encodings, leaksIn } from "./canary.js"
import { take } from "./journey.js"

type Script = (secret: Canary) => FaultModel.Script

const always = { times: Infinity } as const
const api = { on: "api", ...always } as const
const json = (value: unknown) => ({ body: JSON.stringify(value) })

/** Responses that repeat a text in the fields of each error format, for every token request. */
const repeating: Readonly<Record<string, (echo: string) => FaultModel.Script>> = {
  "RFC 6749": (echo) =>
    Fault.status(400, { ...json({ error: echo, error_description: `unknown ${echo}` }), ...always }),
  "a gateway's code": (echo) => Fault.status(401, { ...json({ ErrorCode: echo, Error: `bad ${echo}` }), ...always }),
  "a gateway's fault": (echo) =>
    Fault.status(403, { ...json({ fault: { faultstring: echo, detail: { errorcode: echo } } }), ...always }),
  "the suite's errors": (echo) =>
    Fault.status(404, { ...json({ errors: [{ errorCode: echo, message: echo }, { reason: echo }] }), ...always }),
  "a header and the body": (echo) =>
    Fault.status(405, {
      headers: { "WWW-Authenticate": `Bearer realm="${echo.replace(/\s/g, "")}"` },
      body: echo,
      ...always
    }),
  "the fields of a success": (echo) =>
    Fault.fields({ token_type: echo, expires_in: echo, scope: echo, issued_at: echo, [echo]: echo }, always),
  "the body of a success": (echo) => Fault.body(echo, always),
  "a location": (echo) =>
    Fault.redirect(302, { location: `http://127.0.0.1:9/?client_secret=${echo.replace(/[^!-~]/g, "")}` }, always)
}

/** Every response in plain text, and some of them in two encodings. `endpoint/refusal.test.ts` tests all of them. */
const echoes = Object.fromEntries(
  Object.entries(repeating).flatMap(([place, respond], index) =>
    ["raw", ...(index % 4 === 0 ? ["percent", "base64, shifted by 2"] : [])].map((
      encoding
    ): readonly [string, Script] => [
      `token/echo in ${place}, ${encoding}`,
      ({ value }) => respond(encodings[encoding]?.(value) ?? value)
    ])
  )
)

/** Faults that scenarios of the emulator inject once. These repeat: a slow machine can time out before the first. */
const persistent: Readonly<Record<string, Script>> = {
  "token/always expired": () => Fault.fields({ expires_in: 0 }, always),
  "token/always too large": () => Fault.body(" ".repeat(100_000), always),
  "token/always refused": () => Fault.status(401, { ...json({ error: "invalid_client" }), ...always }),
  "token/always rate limited": () => Fault.status(429, always),
  "token/always redirected": () => Fault.redirect(307, "elsewhere", always),
  "token/always no token": () => Fault.fields({ token_type: "mac" }, always),
  "token/always self-signed": () => Fault.tls("SelfSigned", always)
}

/** The scenarios that need an emulator with TLS. */
const overTls: ReadonlyArray<string> = ["token/always self-signed"]

/** In addition to the scenarios of the emulator: endpoints that repeat the secret, and APIs that fail. */
const extraScenarios: Readonly<Record<string, Script>> = {
  ...echoes,
  ...persistent,
  "token/echo of the form": () => [Fault.echo(401), Fault.echo(503, always)],
  "api/reset": () => Fault.reset("answer", api),
  "api/reset-in-headers": () => Fault.reset("headers", api),
  "api/reset-in-body": () => Fault.reset("body", api),
  "api/close-in-body": () => Fault.close("body", api),
  "api/silence": () => Fault.hang(api),
  "api/silence-in-body": () => Fault.silence("body", api),
  "api/not-http": () => Fault.notHttp(api),
  "api/bad-chunks": () => Fault.badChunks(api),
  "api/gzip": () => Fault.gzip(api),
  "api/no-json": () => Fault.body("{broken", api),
  "api/nothing": () => Fault.body("", api),
  "api/500": () => Fault.status(500, { ...api, body: "<html>no</html>", headers: { "Content-Type": "text/html" } }),
  "api/401-then-reset": () => [Fault.status(401, { on: "api" }), Fault.reset("answer", api)],
  "api/401-then-500": () => [Fault.status(401, { on: "api" }), Fault.status(500, api)],
  "api/401-without-the-scope": () =>
    Fault.status(401, { ...api, headers: { "WWW-Authenticate": "Bearer error=\"insufficient_scope\"" } }),
  "api/401-and-no-other-token": () => [Fault.delay("1 millis"), Fault.status(401, api), Fault.status(503, always)]
}

const all = [
  ...Object.entries(Scenario.all).map(([name, { script, tls }]) => ({ name, script: () => script, tls })),
  ...Object.entries(extraScenarios).map(([name, script]) => ({ name, script, tls: overTls.includes(name) }))
]

/** A name up to its first hyphen: all redirects are of one kind, and all responses with the same status. */
const kindOf = (name: string) => name.split("-", 1)[0]

const isFirst = ({ name }: typeof all[number], index: number) =>
  all.findIndex((other) => kindOf(other.name) === kindOf(name)) === index

/** The errors that must occur in a run, so that the search has something to look at. */
const requiredErrors = [
  "TokenExpiredError/DeadOnArrival",
  "TokenRequestError/Transport",
  "TokenRequestError/Timeout",
  "TokenRequestError/Certificate",
  "TokenRequestError/Redirect",
  "TokenRequestError/TooLarge",
  "TokenRefusedError/InvalidClient",
  "TokenRefusedError/InvalidRequest",
  "TokenRefusedError/RateLimited",
  "TokenRefusedError/Unavailable",
  "TokenRefusedError/Other",
  "TokenResponseError",
  "UntrustedOriginError",
  "HttpClientError/InvalidUrl",
  "HttpClientError/Encode",
  "HttpClientError/Transport",
  "HttpClientError/StatusCode",
  "HttpClientError/Decode",
  "ParseError"
]

/** Runs the first scenario of each kind, which is enough for every kind of error, or the other ones. */
export const onEveryScenario = (client: Client, ofEachKind: "first" | "others"): void => {
  const scenarios = all.filter((scenario, index) => isFirst(scenario, index) === (ofEachKind === "first"))
  const occurred = new Set<string>()
  const canaries = new Map<string, Canary>()
  const processOutputs: Array<Output> = []
  const count = { scenarios: 0, outputs: 0, characters: 0, leaks: 0 }

  let stop = () => {}
  beforeAll(() => {
    stop = watchConsole((output) => processOutputs.push(output))
  })
  afterAll(() => {
    stop()
    console.log(
      `${client.name}: ${count.scenarios} scenarios, ${count.outputs} outputs (${
        Math.round(count.characters / 1e6)
      } million ` +
        `characters), ${count.leaks} leaks; also ${processOutputs.length} console lines and warnings`
    )
  })

  describe.concurrent(`no secret or token leaks on ${client.name}`, () => {
    for (const { name, script, tls } of scenarios) {
      test.live(name, function*() {
        const journey = yield* take(client, { script, tls })
        const leaks = leaksIn(journey.outputs, journey.canaries)
        for (const error of journey.errors) occurred.add(error)
        for (const status of journey.apiStatuses) occurred.add(`api ${status}`)
        for (const canary of journey.canaries) canaries.set(canary.value, canary)
        count.scenarios++
        count.outputs += journey.outputs.length
        count.characters += journey.outputs.reduce((sum, { text }) => sum + text.length, 0)
        count.leaks += leaks.length
        assert.isAbove(journey.outputs.length, 150)
        deepStrictEqual(leaks, [])
      }, 60_000)
    }
  })

  describe(`outside the scenarios on ${client.name}`, () => {
    test("nothing leaks on the console of the process, in its warnings or in the metrics", function*() {
      const text = inspect(yield* Metric.snapshot, { depth: 10, maxArrayLength: Infinity })
      assert.include(text, "store_api_token_acquisitions")
      deepStrictEqual(leaksIn([...processOutputs, { name: "metrics", text }], [...canaries.values()]), [])
    })

    if (ofEachKind === "first") {
      it("control: all kinds of errors occurred, and the API responded with 200 and 401", () => {
        deepStrictEqual(requiredErrors.filter((kind) => !occurred.has(kind)), [])
        deepStrictEqual(["api 200", "api 401"].filter((kind) => !occurred.has(kind)), [])
      })
    }
  })
}
