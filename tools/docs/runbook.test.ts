/** Compares docs/guides/runbook.md and docs/reference/errors.md with the errors that the code creates. */
import { spawnSync } from "node:child_process"
import { HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Cause, ConfigProvider, DateTime, Effect, Option, Redacted } from "effect"
import { vi } from "vitest"
import {
  AccessTokenError,
  ClientCredentials,
  StoreAuth,
  TokenRequest,
  TokenResponse,
  TokenStore
} from "../../packages/core/src/index.js"
import { unreadable } from "../../packages/core/test/support/config.js"
import { Emulator, Fault } from "../../packages/emulator/src/index.js"
import { run } from "../support/command.js"
import {
  codes,
  fenced,
  filesOf,
  inSources,
  read,
  rows,
  type Section,
  sectionOf,
  sections,
  sourceOf
} from "../support/pages.js"

const runbook = "docs/guides/runbook.md"
const all = sections(read(runbook))

const at = DateTime.unsafeMake("2026-01-01T01:00:00Z")
const request = HttpClientRequest.get("https://api.store.example/orders")

const expired = (reason: AccessTokenError.TokenExpiredError["reason"]) =>
  new AccessTokenError.TokenExpiredError({ reason, expiredAt: at, checkedAt: at })

const asked = (reason: AccessTokenError.TokenRequestError["reason"], attempts: number, code?: string) =>
  new AccessTokenError.TokenRequestError({ reason, attempts, code: Option.fromNullable(code) })

const refused = (reason: AccessTokenError.TokenRefusedError["reason"], status: number, code?: string) =>
  new AccessTokenError.TokenRefusedError({ reason, status, code: Option.fromNullable(code) })

interface Printed {
  readonly _tag: string
  readonly message: string
}

/** Two of the four variables are set. */
const environment = {
  STORE_API_AUTH_URL: "https://auth.store.example",
  STORE_API_URL: "https://api.store.example",
  STORE_API_CLIENT_ID: undefined,
  STORE_API_CLIENT_SECRET: undefined
}

/** Every error, with the values on the page. */
const errors: Effect.Effect<ReadonlyArray<Printed>, unknown> = Effect.gen(function*() {
  const empty = yield* Effect.flip(ClientCredentials.make({ clientId: "demo-client", clientSecret: Redacted.make("") }))
  const noToken = yield* Effect.flip(TokenResponse.decode("<html>"))
  const missing = yield* Effect.acquireUseRelease(
    Effect.sync(() => Object.entries(environment).forEach(([name, value]) => vi.stubEnv(name, value))),
    () => Effect.flip(Effect.withConfigProvider(StoreAuth.config(), ConfigProvider.fromEnv())),
    () => Effect.sync(() => vi.unstubAllEnvs())
  )
  const forbidden = yield* Effect.flip(
    HttpClientResponse.filterStatusOk(HttpClientResponse.fromWeb(request, new Response(null, { status: 403 })))
  )
  return [
    expired("Elapsed"),
    expired("ClockMovedBack"),
    expired("DeadOnArrival"),
    empty,
    asked("Transport", 6, "ECONNREFUSED"),
    asked("Timeout", 3),
    asked("Certificate", 1, "DEPTH_ZERO_SELF_SIGNED_CERT"),
    asked("Redirect", 1),
    asked("TooLarge", 1),
    asked("Closed", 0),
    refused("InvalidClient", 401, "invalid_client"),
    new AccessTokenError.TokenRefusedError({
      ...refused("InvalidClient", 401, "invalid_client"),
      changedByFormDecoding: true
    }),
    refused("InvalidRequest", 400, "invalid_request"),
    refused("RateLimited", 429),
    refused("Unavailable", 503),
    refused("Other", 403),
    refused("Other", 401),
    noToken,
    new AccessTokenError.ConfigurationError({ option: "authUrl", reason: "must not have a query" }),
    new AccessTokenError.UntrustedOriginError({
      origin: "https://images.example",
      trusted: ["https://api.store.example"]
    }),
    { _tag: "ConfigError", message: Cause.pretty(Cause.fail(missing)).replace(/^Error: /, "") },
    new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" }),
    // As the platform's clients create it.
    new HttpClientError.RequestError({ request, reason: "Transport", cause: new Error("an invented fault") }),
    forbidden
  ]
})

/** These three errors have a section per reason; the others have one section each. */
const nameOf = (error: { readonly _tag: string }): string =>
  "reason" in error && /^Token(Expired|Request|Refused)Error$/.test(error._tag)
    ? `${error._tag}, ${String(error.reason)}`
    : error._tag

const titleOf = ({ heading, under }: Section): string => codes(`${under} ${heading}`).join(", ")

const cellsOf = (title: string) => rows(all.find((section) => titleOf(section) === title)?.text ?? "")

const acquiring = Effect.map(errors, (all) => all.filter(AccessTokenError.isAccessTokenError))

const isTransient = (error: AccessTokenError.AccessTokenError) => AccessTokenError.isTransient(error) ? "yes" : "no"

const hasCurl = spawnSync("curl", ["--version"]).status === 0

describe(runbook, () => {
  it.effect("has each message as the code makes it, in the section of its error", () =>
    Effect.gen(function*() {
      const made = (yield* errors).map((error) => `${nameOf(error)}: ${error.message}`)
      const shown = all.flatMap((section) =>
        fenced(runbook, section.text).filter(({ language }) => language === "text")
          .map(({ code }) => `${titleOf(section)}: ${code}`)
      )
      const logged = "TokenStoreError: The token store failed; tokens are acquired without it"
      deepStrictEqual(shown.filter((line) => line !== logged), made)
    }))

  it.effect("has a section for every reason of every error, which says whether it is transient", () =>
    Effect.gen(function*() {
      const names = (yield* errors).map(nameOf)
      const { TokenExpiredError, TokenRefusedError, TokenRequestError } = AccessTokenError
      const reasons = [TokenExpiredError, TokenRequestError, TokenRefusedError].flatMap((schema) =>
        schema.fields.reason.literals.map((reason) => `${schema.name}, ${reason}`)
      )
      assert.lengthOf(reasons, 14)
      for (const name of reasons) assert.include(names, name)
      const tags = inSources(/Schema\.TaggedError<(\w+)>/g)
      assert.isAbove(tags.length, 7)
      for (const tag of tags) assert.isTrue(names.some((name) => name.startsWith(tag)), tag)
      for (const error of yield* acquiring) {
        const { text = "" } = all.find((section) => titleOf(section) === nameOf(error)) ?? {}
        const [, transient = ""] = /^- \*\*Transient:\*\* (\w+)/m.exec(text) ?? []
        assert.strictEqual(transient, isTransient(error), nameOf(error))
      }
    }))

  it.effect("has the reasons of CredentialsError, each as the code makes it", () =>
    Effect.gen(function*() {
      const unusable = ["", "demo\n", "one&two", "one\u0001two", "b\u00fccher"].map((clientId) =>
        Effect.flatMap(
          ClientCredentials.make({ clientId, clientSecret: Redacted.make("an invented secret") }),
          TokenRequest.specification.request
        )
      )
      const unread = [ConfigProvider.fromMap(new Map()), unreadable("STORE_API_CLIENT_ID", "an invented fault")].map(
        (provider) => Effect.withConfigProvider(ClientCredentials.fromConfig(), provider)
      )
      const failing: ReadonlyArray<Effect.Effect<unknown, AccessTokenError.CredentialsError>> = [...unusable, ...unread]
      const made = yield* Effect.forEach(failing, Effect.flip)
      deepStrictEqual(cellsOf("CredentialsError").map(([cell]) => codes(cell)[0]), made.map(({ reason }) => reason))
    }))

  it("has the reasons of ConfigurationError that are in the sources, and no other", () => {
    const reason =
      /(?:ConfigurationError\(\{[^}]*reason: |const reason = |\bfail\(|\b(?:attempt|check|unusable)\(\s*"\w+",\s*(?:[^"`]+,\s*)?)["`]([^"`]+)["`]/g
    const files = filesOf("packages/*/src/*.ts", ":!packages/core/src/AccessTokenError.ts")
    const made = inSources(reason, files.filter((path) => sourceOf(path).includes("ConfigurationError")))
      .concat(inSources(/"(must not have [^"]+ parameters)"/g, ["packages/core/src/TokenRequest.ts"]))
    assert.isAbove(made.length, 15)
    assert.sameMembers(
      [...new Set(cellsOf("ConfigurationError").map(([, cell]) => codes(cell)[0]))],
      [...new Set(made.map((text) => text.replace("${path}", "/v1/oauth/accesstoken")))]
    )
  })

  it("has the steps of store-api check, and no other", () => {
    // The steps to a proxy, and to an API on another origin, have the same names with a prefix.
    const step = /\bstep\(report, ["`](\$\{prefix\})?(?:\$\{server\})?([^"`]+)["`]/g
    const steps = [...sourceOf("packages/cli/src/commands/check.ts").matchAll(step)]
      .flatMap(([, prefix, name = ""]) => prefix === undefined ? [name] : [name, `proxy ${name}`])
    assert.lengthOf(steps, 10)
    assert.sameMembers(rows(sectionOf(runbook, "Find the cause")).map(([name]) => codes(name)[0]), steps)
  })

  it("has the warnings of the sources, and no other", () => {
    const lines = inSources(/Effect\.logWarning\(\s*"([^"]+)"/g)
    assert.lengthOf(lines, 4)
    assert.sameMembers(rows(sectionOf(runbook, "Log lines")).map(([line]) => codes(line)[0]), [...lines])
  })

  it.live.runIf(hasCurl || process.env["CI"] === "true")(
    "has a token request by hand that shows what the endpoint does, and neither the secret nor the token",
    () =>
      Effect.gen(function*() {
        const [block] = fenced(runbook, read(runbook)).filter(({ language }) => language === "sh")
        const emulator = yield* Emulator.Emulator
        const secret = Redacted.value(Emulator.demoClient.clientSecret)
        const byHand = Effect.promise(() =>
          run("bash", ["-c", block?.code ?? "exit 1"], {
            env: {
              STORE_API_AUTH_URL: emulator.url,
              STORE_API_CLIENT_ID: Emulator.demoClient.clientId,
              STORE_API_CLIENT_SECRET: secret
            }
          })
        )
        const good = yield* byHand
        assert.match(good.stdout, /^HTTP\/1\.1 200 OK\r\n/)
        assert.match(good.stdout, /^date: /im)
        const [token] = yield* emulator.tokens
        assert.isDefined(token)
        for (const text of [good.stdout, good.stderr]) {
          assert.notInclude(text, secret)
          assert.notInclude(text, Redacted.value(token.value))
        }
        yield* emulator.fail(Fault.redirect(302, { location: "https://elsewhere.example/" }))
        assert.match((yield* byHand).stdout, /^HTTP\/1\.1 302 [^]*^location: https:\/\/elsewhere\.example\/\r$/im)
        yield* emulator.fail(Fault.reset("answer"))
        assert.match((yield* byHand).stderr, /^curl: \((52|56)\)/)
      }).pipe(Effect.provide(Emulator.layer()))
  )
})

describe("docs/reference/errors.md", () => {
  const page = read("docs/reference/errors.md")

  it.effect("has each error of AccessTokenError, and says which are transient", () =>
    Effect.gen(function*() {
      let tag: string | undefined
      const listed = rows(sectionOf("docs/reference/errors.md", "Acquiring a token"))
        .filter((cells) => cells.length === 4)
        .map(([first, reason, , transient = ""]) => {
          // An empty cell of a tag repeats the one above.
          tag = codes(first)[0] ?? tag
          return `${[tag, ...codes(reason)].join(", ")}: ${transient}`
        })
      const made = (yield* acquiring).map((error) => `${nameOf(error)}: ${isTransient(error)}`)
      deepStrictEqual([...listed].sort(), [...new Set(made)].sort())
    }))

  it.effect("says which errors have no retryAt", () =>
    Effect.gen(function*() {
      const [, text] = /These never have one: ([^.]+)\./.exec(page.replace(/\s+/g, " ")) ?? []
      const without = (yield* acquiring)
        .filter((error) => Option.isNone(AccessTokenError.withRetryAt(error, Option.some(at)).retryAt))
        .map((error) => nameOf(error).replace(/^.*, /, ""))
      deepStrictEqual([...codes(text)].sort(), [...new Set(without)].sort())
    }))

  it.effect("has every error that an application can see", () =>
    Effect.gen(function*() {
      const tags = (yield* errors).map(({ _tag }) => _tag)
      const named = rows(page).flatMap(([tag]) => codes(tag).slice(0, 1))
      assert.sameMembers([...new Set(named)], [...new Set(tags)])
    }))
})
