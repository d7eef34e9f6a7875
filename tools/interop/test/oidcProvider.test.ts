import { oidcProvider } from "../src/oidcProvider.js"
import { contract } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"
import { countsWholeSeconds, decodesTheForm } from "./support/quirks.js"

contract(inOwnProcess(oidcProvider, "oidcProvider"), {
  quirks: [decodesTheForm, countsWholeSeconds(oidcProvider)]
})
