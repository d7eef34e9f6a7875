/** The contract over django-oauth-toolkit: a token endpoint in Python. */
import { describe } from "@effect/vitest"
import { contract } from "../src/contract.js"
import { django, djangoOAuthToolkit, rawClient } from "../src/debian/djangoOAuthToolkit.js"
import { isLeftOut } from "../src/debian/Program.js"
import { inOwnProcess } from "../src/ownProcess.js"
import { decodesTheForm } from "../src/quirks.js"

describe.skipIf(isLeftOut(django))(
  "of Debian",
  () =>
    contract(inOwnProcess(djangoOAuthToolkit, "debian/djangoOAuthToolkit.js", "djangoOAuthToolkit"), {
      quirks: [decodesTheForm(rawClient)]
    })
)
