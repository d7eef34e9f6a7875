import * as Config from "effect/Config"

/** Combines configurations. The error names every one that is missing. */
export const configOf = Config.all
