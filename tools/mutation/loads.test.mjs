/**
 * A mutant may keep a module from loading. Then the test files that import it do not load either, and the runner, which
 * counts tests that fail, sees none: this one fails.
 */
import { it } from "vitest"

it("core loads, and what its tests stand on", async () => {
  await import("@store-api/core")
  await import("../../packages/core/test/support/scriptedSource.ts")
  await import("../../packages/core/test/support/wire.ts")
})
