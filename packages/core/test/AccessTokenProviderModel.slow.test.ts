import { keepsTheRules } from "./support/providerModel.js"

keepsTheRules(5000)
