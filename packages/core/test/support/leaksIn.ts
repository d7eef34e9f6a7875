import { stripVTControlCharacters } from "node:util"
import { find } from "../leaks/support/canary.js"

/** The private values of which a text holds a part, in any encoding or with colours. See `controls.test.ts`. */
export const leaksIn = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets.filter((value) => find(stripVTControlCharacters(text), [{ name: "secret", value }]).length > 0)
