/**
 * Gets one token, writes `done`, and exits unless it leaves its layer open (argument 2: `"leaked"`).
 * Argument 1 holds the settings.
 */
import { Effect, Exit, Scope } from "effect"
import * as Member from "../support/member.js"

const [settings = "", end] = process.argv.slice(2)

const program = Effect.gen(function*() {
  const scope = yield* Scope.make()
  const { get } = yield* Scope.extend(Member.make(JSON.parse(settings) as Member.Settings), scope)
  yield* get
  if (end !== "leaked") yield* Scope.close(scope, Exit.void)
  process.stdout.write("done\n")
})

void Effect.runPromise(program)
