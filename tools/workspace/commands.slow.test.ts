import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"

interface Manifest {
  readonly engines: { readonly node: string }
}

const manifest = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as Manifest

/** Node with a fake version. */
const pretending = (version: string, script: string) => {
  const preload = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
  return run(process.execPath, ["--import", `data:text/javascript,${encodeURIComponent(preload)}`, script])
}

describe("on a Node that is too old", () => {
  it("tools/workspace/run.mjs says so in one sentence", async () => {
    for (const version of ["18.20.8", "20.18.3"]) {
      const { status, stderr, stdout } = await pretending(version, "tools/workspace/run.mjs")
      assert.strictEqual(status, 1)
      assert.strictEqual(stdout, "")
      const needed = manifest.engines.node.replace(">=", "")
      assert.strictEqual(stderr, `This needs Node ${needed} or newer, and this is ${version}: install a newer Node.\n`)
    }
  })

  it("the oldest supported Node and newer ones get no message", async () => {
    for (const version of ["20.19.0", "22.0.0", "24.1.0"]) {
      const { status, stderr } = await pretending(version, "tools/workspace/require-node.mjs")
      assert.strictEqual(stderr, "")
      assert.strictEqual(status, 0)
    }
  })
})
