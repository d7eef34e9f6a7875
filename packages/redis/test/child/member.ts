/** A process that is one member of a fleet over Redis. */
import { RedisTokenStore } from "@store-api/redis"
import { run } from "@store-api/testing/member"
import { Redacted } from "effect"

run((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))
