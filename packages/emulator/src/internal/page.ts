/** The page that shows an emulator. A bundle replaces this module by one that holds the text. */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"

/** The file of the page. The path is the same from `src/internal` and from `dist/internal`. */
export const page = Effect.sync(() =>
  readFileSync(new URL("../../src/page.html", import.meta.url), "utf8")
)
