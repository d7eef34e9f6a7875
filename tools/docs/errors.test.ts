/** The errors of all public modules, and the pages that list them. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenError } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { DateTime, Effect, Option, Redacted, Schema } from "effect"
import { root, run } from "../support/command.js"
import { codes, fenced, filesOf, read, rows, sectionOf, sections } from "../support/pages.js"

const runbook = "docs/guides/runbook.md"
const errorsPage = "docs/reference/errors.md"
const {
  CredentialsError,
  TokenExpiredError,
  TokenRefusedError,
  TokenRequestError,
  TokenResponseError
} = AccessTokenError

interface ErrorClass {
  readonly name: string
  readonly prototype: Error
  /** The fields of a class of Schema. */
  readonly fields?: object
}

const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof Error

const errorClassesOf = (module: object): ReadonlyArray<ErrorClass> =>
  Object.values(module).filter(isErrorClass)

/** The command line exports no module. */
const publicModules = filesOf("packages/*/src/*.ts", ":!packages/cli")

const errorClasses = Promise.all(
  publicModules.map((path) => import(join(root, path)) as Promise<object>)
).then((modules) => [...new Set(modules.flatMap(errorClassesOf))])

/** Applications do not import the emulator. */
const applicationErrors = errorClasses.then((classes) =>
  classes.filter(({ fields }) => fields !== undefined).map(({ name }) => name)
    .filter((name) => name !== "EmulatorError")
)

/** Web frameworks take an error with one of these for a response, and send it to their own client. */
const isOfResponse = ({ fields = {}, prototype }: ErrorClass): boolean =>
  ["status", "statusCode", "headers"].some((name) => name in fields || name in prototype)

class ErrorWithStatus
  extends Schema.TaggedError<ErrorWithStatus>()("ErrorWithStatus", { status: Schema.Int })
{}

describe("the errors of all public modules", () => {
  it("have no property of a response", async () => {
    const classes = await errorClasses
    assert.includeMembers(classes.map(({ name }) => name), [
      "TokenRefusedError",
      "TokenStoreError",
      "EmulatorError"
    ])
    assert.deepStrictEqual(classes.filter(isOfResponse).map(({ name }) => name), [])
    assert.isTrue(isOfResponse(ErrorWithStatus), "control: the search finds one")
  })

  it("have fields that this test can read", async () => {
    const classes = await errorClasses
    // Only tests import it, and it carries no error of a server.
    const others = classes.filter(({ fields }) => fields === undefined).map(({ name }) => name)
    assert.deepStrictEqual(others, ["TokenStoreContractError"])
  })
})

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
const acquisitionErrors = new Map(
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

const titles = sections(read(runbook)).map(({ heading, under }) =>
  codes(`${under} ${heading}`).join(", ")
)

const hasCurl = spawnSync("curl", ["--version"]).status === 0

describe(runbook, () => {
  it("has a section for every reason of every error", async () => {
    assert.strictEqual(acquisitionErrors.size, 17)
    assert.includeMembers(titles, [...acquisitionErrors.keys()])
    for (const tag of await applicationErrors) {
      assert.isTrue(titles.some((title) => title.startsWith(tag)), tag)
    }
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
      [...acquisitionErrors].map(([name, error]) => `${name}: ${transient(error)}`)
    )
  })

  it("says which errors have no retryAt", () => {
    const page = read(errorsPage).replace(/\s+/g, " ")
    const [, text] = /waits for it\. ([^.]+) never have one\./.exec(page) ?? []
    const without = [...acquisitionErrors]
      .filter(([, error]) =>
        AccessTokenError.withRetryAt(error, Option.some(at)).retryAt === undefined
      )
      .map(([name]) => name.replace(/^.*, /, ""))
    assert.sameMembers([...codes(text)], without)
  })

  it("has every error that an application can see", async () => {
    const named = rows(read(errorsPage)).flatMap(([tag]) => codes(tag).slice(0, 1))
    const others = ["ConfigError", "RequestError", "ResponseError"]
    assert.sameMembers([...new Set(named)], [
      ...others,
      ...await applicationErrors
    ])
  })
})
