/**
 * The demo of `npm start`: acquires a token, uses it, and shows its expiry and revocation.
 *
 * Without any `STORE_API_*` variable it starts the emulator on this machine; otherwise it uses the real service.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { main } from "./demo/main.js"

NodeRuntime.runMain(Effect.map(main, (code) => {
  process.exitCode = code
}))
