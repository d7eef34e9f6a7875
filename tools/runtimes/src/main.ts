/**
 * On Node, Bun and Deno: runs the contract with the laboratory at the given URL. Prints a line of JSON for each check,
 * then their number.
 */
import { Console, Effect } from "effect"
import { run } from "./Check.js"
import * as contract from "./contract.js"

const checks = contract.checks({ certificates: true })

const laboratory = process.argv[2] ?? ""

const print = (value: unknown) => Console.log(JSON.stringify(value))

await Effect.runPromise(
  // Each check has its own emulator, and most of its time is waiting.
  Effect.forEach(checks, (check) => Effect.tap(run(check, laboratory), print), { concurrency: 6, discard: true }).pipe(
    Effect.zipRight(print({ declared: checks.length }))
  )
)
