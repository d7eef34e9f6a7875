/** The search over many outputs. */
import type { Canary } from "./canary.js"
import type { Output } from "./renderings.js"
import { find } from "./search.js"

/** All outputs at once, each text once, since there is nothing to find; one by one only when there is. */
export const leaksIn = (outputs: ReadonlyArray<Output>, canaries: ReadonlyArray<Canary>): ReadonlyArray<string> =>
  find([...new Set(outputs.map(({ text }) => text))].join("\n---\n"), canaries).length === 0
    ? []
    : outputs.flatMap(({ name, text }) =>
      find(text, canaries).map(({ canary, encoding }) => `${name} shows the ${canary} (${encoding})`)
    )
