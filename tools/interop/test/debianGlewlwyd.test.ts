/** The contract over Glewlwyd: a token endpoint in C. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider } from "@store-api/core"
import { Effect } from "effect"
import { contract, type Quirk, storeAuth } from "../src/contract.js"
import * as Glewlwyd from "../src/debian/glewlwyd.js"
import { isLeftOut } from "../src/debian/Program.js"
import { nginx } from "../src/nginx/Nginx.js"
import { inOwnProcess } from "../src/ownProcess.js"
import { countsWholeSeconds } from "../src/quirks.js"

const refusal = { reason: "Other", status: 403, code: "" } as const

const wantsScope: Quirk = {
  says:
    "needs a `scope`, which the specification does not send: without one it responds with 403 and no code; nginx adds it",
  holds: () =>
    Effect.gen(function*() {
      const running = yield* Glewlwyd.make({ addsScope: false }).start({ life: 600 })
      const error = yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => Effect.flip(get)).pipe(
        Effect.provide(storeAuth(running, running.credentials))
      )
      assert(error._tag === "TokenRefusedError")
      deepStrictEqual([error.reason, error.status], [refusal.reason, refusal.status])
    })
}

describe.skipIf(isLeftOut(Glewlwyd.program) || isLeftOut(nginx))(
  "of Debian",
  () =>
    contract(inOwnProcess(Glewlwyd.glewlwyd, "debian/glewlwyd.js", "glewlwyd"), {
      wrongSecret: refusal,
      unknownClient: refusal,
      quirks: [wantsScope, countsWholeSeconds(Glewlwyd.glewlwyd)]
    })
)
