import { contract } from "../src/contract.js"
import { oidcProvider, rawClient } from "../src/oidcProvider.js"
import { inOwnProcess } from "../src/ownProcess.js"
import { countsWholeSeconds, decodesTheForm } from "../src/quirks.js"

contract(inOwnProcess(oidcProvider, "oidcProvider.js", "oidcProvider"), {
  quirks: [decodesTheForm(rawClient), countsWholeSeconds(oidcProvider)]
})
