import * as Config from "effect/Config"

/** Combines configurations. The error names every one that is missing, which `Config.all` of Effect 4 does not do. */
export const configOf = Config.all
