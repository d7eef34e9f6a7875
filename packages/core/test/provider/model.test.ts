import { keepsTheRules } from "../support/providerModel.js"

keepsTheRules(800)
