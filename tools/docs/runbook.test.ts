/** Compares the errors in docs/guides/runbook.md and docs/reference/errors.md with the code. */
import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, ClientCredentials, TokenRequest } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { unreadable } from "@store-api/testing/config"
import { ConfigProvider, DateTime, Effect, Option, Redacted } from "effect"
import { run } from "../support/command.js"
import {
  codes,
  fenced,
  filesOf,
  inSources,
  read,
  rows,
  sectionOf,
  sections,
  sourceOf
} from "../support/pages.js"

const runbook = "docs/guides/runbook.md"
const errorsPage = "docs/reference/errors.md"
const {
  CredentialsError,
  TokenExpiredError,
  TokenRefusedError,
  TokenRequestError,
  TokenResponseError
} = AccessTokenError

const at = DateTime.unsafeMake("2026-01-01T01:00:00Z")

const failures: ReadonlyArray<AccessTokenError.AccessTokenError> = [
  ...TokenExpiredError.fields.reason.literals.map((reason) =>
    new TokenExpiredError({ reason, expiredAt: at, checkedAt: at })
  ),
  ...TokenRequestError.fields.reason.literals.map((reason) =>
    new TokenRequestError({ reason, attempts: 1 })
  ),
  ...TokenRefusedError.fields.reason.literals.map((reason) =>
    new TokenRefusedError({ reason, httpStatus: 400 })
  ),
  new CredentialsError({ field: "clientId", reason: "is empty" }),
  new TokenResponseError({ problems: [] })
]

/** Each error of an acquisition, by its tag and its reason. The reason of some is a sentence. */
const acquiring = new Map(
  failures.map((error) =>
    [
      "reason" in error && !error.reason.includes(" ")
        ? `${error._tag}, ${error.reason}`
        : error._tag,
      error
    ] as const
  )
)

const transient = (error: AccessTokenError.AccessTokenError) =>
  AccessTokenError.isTransient(error) ? "yes" : "no"

const textOf = new Map(
  sections(read(runbook)).map((
    { heading, text, under }
  ) => [codes(`${under} ${heading}`).join(", "), text])
)
const cellsOf = (title: string) => rows(textOf.get(title) ?? "")

const hasCurl = spawnSync("curl", ["--version"]).status === 0

describe(runbook, () => {
  it("has a section for every reason of every error, which says whether it is transient", () => {
    assert.strictEqual(acquiring.size, 17)
    for (const [name, error] of acquiring) {
      assert.match(
        textOf.get(name) ?? "",
        new RegExp(`^- \\*\\*Transient:\\*\\* ${transient(error)}\\b`, "m"),
        name
      )
    }
    const tags = inSources(/Schema\.TaggedError<(\w+)>/g)
    assert.isAbove(tags.length, 7)
    for (const tag of tags) {
      assert.isTrue([...textOf.keys()].some((title) => title.startsWith(tag)), tag)
    }
  })

  it.effect("has the reasons of CredentialsError, each as the code makes it", () =>
    Effect.gen(function*() {
      const clientId = "demo-client"
      const wrong = [{}, { clientId: 5 }, { clientId, clientSecret: "an invented secret" }]
        .map((options) =>
          // JavaScript may pass any value.
          ClientCredentials.make(options as ClientCredentials.Options)
        )
      const unusable = ["", "demo\n", "one&two", "one\u0001two", "b\u00fccher"].map((
        clientId
      ) =>
        Effect.flatMap(
          ClientCredentials.make({
            clientId,
            clientSecret: Redacted.make("an invented secret")
          }),
          TokenRequest.specification.request
        )
      )
      const unread = [
        ConfigProvider.fromMap(new Map()),
        unreadable("STORE_API_CLIENT_ID", "an invented fault")
      ].map(
        (provider) => Effect.withConfigProvider(ClientCredentials.fromConfig(), provider)
      )
      const failing: ReadonlyArray<Effect.Effect<unknown, AccessTokenError.CredentialsError>> =
        [
          ...wrong,
          ...unusable,
          ...unread
        ]
      const made = yield* Effect.forEach(failing, Effect.flip)
      deepStrictEqual(
        cellsOf("CredentialsError").map(([cell]) => codes(cell)[0]),
        made.map(({ reason }) => reason)
      )
    }))

  it("has the reasons of ConfigurationError that are in the sources, and no other", () => {
    // A reason may continue after its literal, with a path or the kind of an option.
    const literal = /["`]((?:must|is missing|is empty|is not)[^"`$\\]*)/g
    const files = filesOf(
      "packages/*/src/*.ts",
      ":!packages/cli",
      ":!packages/emulator",
      ":!packages/core/src/ClientCredentials.ts"
    )
    const code = files.map((path) => sourceOf(path).replace(/^ *(\/\*\*|\*|\/\/).*$/gm, ""))
      .join("\n")
    const starts = [...new Set([...code.matchAll(literal)].map(([, start = ""]) => start))]
    const listed = cellsOf("ConfigurationError").flatMap(([, cell]) => codes(cell)).filter((
      code
    ) => code.includes(" "))
    assert.isAbove(starts.length, 15)
    deepStrictEqual(
      starts.filter((start) => !listed.some((reason) => reason.startsWith(start))),
      []
    )
    deepStrictEqual(
      listed.filter((reason) => !starts.some((start) => reason.startsWith(start))),
      []
    )
  })

  it("has the steps of store-api check, and no other", () => {
    // The steps to a proxy, and to an API on another origin, have the same names with a prefix.
    const step = /\bstep\(report, ["`](\$\{prefix\})?(?:\$\{kind\})?([^"`]+)["`]/g
    const steps = [...sourceOf("packages/cli/src/commands/check/check.ts").matchAll(step)]
      .flatMap(([, prefix, name = ""]) =>
        prefix === undefined ? [name] : [name, `proxy ${name}`]
      )
    assert.lengthOf(steps, 10)
    assert.sameMembers(
      rows(sectionOf(runbook, "Find the cause")).map(([name]) => codes(name)[0]),
      steps
    )
  })

  it.live.runIf(hasCurl || process.env["CI"] === "true")(
    "has a token request by hand that shows what the endpoint does, and neither the secret nor the token",
    () =>
      Effect.gen(function*() {
        const [block] = fenced(runbook, read(runbook)).filter(({ language }) =>
          language === "sh"
        )
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
        assert.match(
          (yield* byHand).stdout,
          /^HTTP\/1\.1 302 [^]*^location: https:\/\/elsewhere\.example\/\r$/im
        )
        yield* emulator.fail(Fault.reset("answer"))
        assert.match((yield* byHand).stderr, /^curl: \((52|56)\)/)
      }).pipe(Effect.provide(Emulator.layer()))
  )
})

describe(errorsPage, () => {
  const listed = rows(sectionOf(errorsPage, "Acquiring a token")).filter((cells) =>
    cells.length === 4
  )

  it("has each error of AccessTokenError, and says which are transient", () => {
    let tag: string | undefined
    const shown = listed.map(([first, reason, , last = ""]) => {
      // An empty cell of a tag repeats the one above.
      tag = codes(first)[0] ?? tag
      return `${[tag, ...codes(reason)].join(", ")}: ${last}`
    })
    assert.sameMembers(
      shown,
      [...acquiring].map(([name, error]) => `${name}: ${transient(error)}`)
    )
  })

  it("says which errors have no retryAt", () => {
    const page = read(errorsPage).replace(/\s+/g, " ")
    const [, text] = /These never have one: ([^.]+)\./.exec(page) ?? []
    const without = [...acquiring]
      .filter(([, error]) =>
        AccessTokenError.withRetryAt(error, Option.some(at)).retryAt === undefined
      )
      .map(([name]) => name.replace(/^.*, /, ""))
    assert.sameMembers([...codes(text)], without)
  })

  it("has every error that an application can see", () => {
    const named = rows(read(errorsPage)).flatMap(([tag]) => codes(tag).slice(0, 1))
    const others = ["ConfigError", "RequestError", "ResponseError"]
    assert.sameMembers([...new Set(named)], [
      ...others,
      ...inSources(/Schema\.TaggedError<(\w+)>/g)
    ])
  })
})
