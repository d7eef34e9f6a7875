/** The files of a worker share its environment, so each of them must leave the variables as it found them. */
import { afterAll, assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"

const { env } = process
const before = { ...env }

afterAll(() => {
  const changed = Object.keys({ ...before, ...env }).filter((name) =>
    env[name] !== before[name]
  )
  assert.isTrue(process.env === env, "a test replaced process.env")
  deepStrictEqual(changed, [], "tests changed these variables and did not restore them")
})
