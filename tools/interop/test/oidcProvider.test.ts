import { oidcProvider } from "../src/oidcProvider.js"
import { contract, countsWholeSeconds, decodesTheForm } from "./support/contract.js"
import { inOwnProcess } from "./support/ownProcess.js"

contract(inOwnProcess(oidcProvider, "oidcProvider"), {
  quirks: [decodesTheForm, countsWholeSeconds(oidcProvider)]
})
