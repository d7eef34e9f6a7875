/** The errors of all public modules. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { root } from "../support/command.js"
import { filesOf } from "../support/pages.js"

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

/** Web frameworks take an error with one of these for a response, and send it to their own client. */
const isOfResponse = ({ fields = {}, prototype }: ErrorClass): boolean =>
  ["status", "statusCode", "headers"].some((name) => name in fields || name in prototype)

class ErrorWithStatus
  extends Schema.TaggedError<ErrorWithStatus>()("ErrorWithStatus", { status: Schema.Int })
{}

describe("the errors of all public modules", async () => {
  const modules = await Promise.all(
    publicModules.map((path) => import(join(root, path)) as Promise<object>)
  )
  const classes = [...new Set(modules.flatMap(errorClassesOf))]

  it("have no property of a response", () => {
    assert.includeMembers(classes.map(({ name }) => name), [
      "TokenRefusedError",
      "TokenStoreError",
      "EmulatorError"
    ])
    assert.deepStrictEqual(classes.filter(isOfResponse).map(({ name }) => name), [])
    assert.isTrue(isOfResponse(ErrorWithStatus), "control: the search finds one")
  })

  it("have fields that this test can read", () => {
    // Only tests import it, and it carries no error of a server.
    const others = classes.filter(({ fields }) => fields === undefined).map(({ name }) => name)
    assert.deepStrictEqual(others, ["TokenStoreContractError"])
  })
})
