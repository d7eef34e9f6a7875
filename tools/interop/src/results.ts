/** What a run found, handed to the command that writes the page. */
import { appendFileSync } from "node:fs"
import { Effect } from "effect"
import type { Row } from "./page.js"

/**
 * Adds a row to a table of docs/interop.md. The command names the file in `INTEROP_RESULTS`; without it nothing is kept, so
 * that a test file can be run alone.
 */
export const report = (table: string, row: Row): Effect.Effect<void> =>
  Effect.sync(() => {
    const { INTEROP_RESULTS: file } = process.env
    if (file !== undefined) appendFileSync(file, `${JSON.stringify({ table, row })}\n`)
  })
