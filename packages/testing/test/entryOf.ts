import type { TokenStore } from "@store-api/core"
import { Effect, Option } from "effect"

/** The entry of a key, without what remains of it. */
export const entryOf = (store: TokenStore.Service, key: string) =>
  Effect.map(store.get(key), Option.map(({ entry }) => entry))
