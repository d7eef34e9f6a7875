/** The contract over django-oauth-toolkit: a token endpoint in Python. */
import { describe } from "@effect/vitest"
import { djangoOAuthToolkit, program } from "../src/djangoOAuthToolkit.js"
import { isLeftOut } from "../src/Program.js"
import { contract, decodesTheForm } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"

describe.skipIf(isLeftOut(program))(
  "of Debian",
  () => contract(inOwnProcess(djangoOAuthToolkit, "djangoOAuthToolkit"), { quirks: [decodesTheForm] })
)
