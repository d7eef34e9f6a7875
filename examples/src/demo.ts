/**
 * The demo behind `npm start`: a token is acquired, used, cached, renewed and recovered.
 *
 * Without any `STORE_API_*` variable it starts the emulator on this machine; with them it talks to the real service.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { main } from "./demo/main.js"

NodeRuntime.runMain(Effect.map(main, (code) => {
  process.exitCode = code
}))
