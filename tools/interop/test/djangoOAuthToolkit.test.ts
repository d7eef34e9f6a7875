/** The contract over django-oauth-toolkit: a token endpoint in Python. */
import { describe } from "@effect/vitest"
import { djangoOAuthToolkit, program } from "../src/djangoOAuthToolkit.js"
import { isLeftOut } from "../src/Program.js"
import { contract } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"
import { decodesTheForm } from "./support/quirks.js"

describe.skipIf(isLeftOut(program))(
  "of Debian",
  () => contract(inOwnProcess(djangoOAuthToolkit, "djangoOAuthToolkit"), { quirks: [decodesTheForm] })
)
