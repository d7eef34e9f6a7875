/** Runs the demo as a process: its exit code, and its output into a pipe. Needs `npm run build`. */
import { assert, describe, it } from "vitest"
import { run } from "./support/command.js"

const demo = (env: Record<string, string> = {}) => run(process.execPath, ["examples/dist/demo.js"], { env })

describe("npm start", { timeout: 60_000 }, () => {
  it("exits with code 0 after the last line, without colours in a pipe", async () => {
    const { status, stderr, stdout } = await demo()
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.match(stdout, /token 3 +━+╌*> in use\n[^]* a call\n$/)
    assert.notInclude(stdout, "\u001b")
  })

  it("exits with code 1 and one sentence when variables are missing", async () => {
    assert.deepStrictEqual(await demo({ STORE_API_URL: "https://store.example" }), {
      status: 1,
      stdout: "",
      stderr: "STORE_API_URL is set, so the real service is used, but STORE_API_AUTH_URL, STORE_API_CLIENT_ID and " +
        "STORE_API_CLIENT_SECRET are missing: set them, or unset all STORE_API_* variables to use the emulator.\n"
    })
  })
})
