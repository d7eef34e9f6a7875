/** The types of the emulator: its layer, faults and options. */
import {
  Client,
  Emulator,
  type EmulatorError,
  Fault,
  type IssuedToken,
  type RecordedRequest,
  Scenario
} from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import { expect, test } from "tstyche"

type Service = Emulator.Service

test("its secrets are Redacted wherever they are met", () => {
  expect<IssuedToken.IssuedToken["value"]>().type.toBe<Redacted.Redacted>()
  expect<RecordedRequest.RecordedRequest["body"]>().type.toBe<Redacted.Redacted>()
  expect<RecordedRequest.RecordedRequest["rawUrl"]>().type.toBe<Redacted.Redacted>()
  expect<RecordedRequest.RecordedRequest["headers"]>().type.toBe<
    Readonly<Record<string, string | Redacted.Redacted>>
  >()
  expect(Client.demoClient).type.toBe<{
    readonly clientId: "demo-client"
    readonly clientSecret: Redacted.Redacted
    readonly applicationName: "Demo application"
    readonly developerEmail: "demo@example.invalid"
  }>()
})

test("its error leaves the channel by its tag", () => {
  expect<EmulatorError.EmulatorError["reason"]>().type.toBe<
    "PortInUse" | "CannotListen" | "InvalidOption"
  >()
  expect(
    Emulator.make().pipe(
      Effect.catchTag("EmulatorError", () => Effect.succeed("none" as const))
    )
  ).type.toBe<
    Effect.Effect<Service | "none", never, Scope.Scope>
  >()
})

test("options", () => {
  const clientSecret = Redacted.make("not a real one")
  expect(Emulator.layer).type.toBeCallableWith({
    clients: [Client.demoClient, { clientId: "other", clientSecret }]
  })
  expect(Emulator.layer).type.not.toBeCallableWith({
    clients: [{ clientId: "other", clientSecret: "in the open" }]
  })
  expect(Emulator.layer).type.toBeCallableWith({
    clientAuthentication: ["client_secret_basic", "client_secret_post"]
  })
  expect(Emulator.layer).type.not.toBeCallableWith({ clientAuthentication: "tls_client_auth" })
  expect(Emulator.layer).type.not.toBeCallableWith({ lifetime: "2 seconds" })
})

test("faults have different types", () => {
  const fault = {} as Fault.Fault
  if (Fault.is("Redirect")(fault)) expect(fault.to).type.toBe<Fault.RedirectTarget>()
  expect(Fault.is("Hang")).type.toBe<
    (u: unknown) => u is Extract<Fault.Fault, { readonly _tag: "Hang" }>
  >()
  expect(Fault.is).type.not.toBeCallableWith("Nothing")
  const one = () => 1
  const all = {
    Answer: one,
    Delay: one,
    Hang: one,
    Amend: one,
    Gzip: one,
    Continue: one,
    Revoke: one,
    Echo: one,
    RetryDate: one,
    Drip: one,
    ForgetNonces: one,
    Flood: one,
    Redirect: one,
    Raw: one,
    Stale: one,
    Connection: one
  }
  expect(Fault.match(fault, { ...all, Tls: () => "tls" })).type.toBe<string | number>()
  expect(Fault.match).type.not.toBeCallableWith(fault, all)
})

test("options of faults", () => {
  expect(Fault.status).type.toBeCallableWith(503, {
    on: "api",
    times: 2,
    headers: { "Retry-After": "1" },
    body: ""
  })
  expect(Fault.status).type.not.toBeCallableWith(503, { on: "proxy" })
  expect(Fault.status).type.not.toBeCallableWith(503, { retryAfter: 1 })
  expect(Fault.redirect).type.not.toBeCallableWith(302, "nowhere")
  expect(Fault.tls).type.not.toBeCallableWith("Expired", { on: "api" })
})

test("a scenario has one of the known names", () => {
  expect(Scenario.get).type.toBeCallableWith("token/specification")
  expect(Scenario.get).type.not.toBeCallableWith("no such scenario")
})
