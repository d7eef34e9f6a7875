/** The contract over Glewlwyd: a token endpoint in C. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { glewlwyd, program, withoutScope } from "../src/glewlwyd.js"
import { nginx } from "../src/Nginx.js"
import { isLeftOut } from "../src/Program.js"
import { client } from "./support/client.js"
import { contract, countsWholeSeconds, type Quirk } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"

const refusal = { reason: "Other", status: 403, code: "" } as const

const wantsScope: Quirk = {
  says:
    "needs a `scope`, which the specification does not send: without one it responds with 403 and no code; nginx adds it",
  holds: () =>
    Effect.gen(function*() {
      const { provider } = yield* client(yield* withoutScope.start({ life: 600 }))
      const error = yield* Effect.flip(provider.get)
      assert(error._tag === "TokenRefusedError")
      assert.deepStrictEqual([error.reason, error.status], [refusal.reason, refusal.status])
    })
}

describe.skipIf(isLeftOut(program) || isLeftOut(nginx))(
  "of Debian",
  () => contract(inOwnProcess(glewlwyd, "glewlwyd"), { refusal, quirks: [wantsScope, countsWholeSeconds(glewlwyd)] })
)
