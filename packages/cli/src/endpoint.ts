/** One token request. Loaded when there is no stored token, since it takes longer to load than to read one. */
import type { AccessToken } from "@store-api/core/AccessToken"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { Settings } from "./settings.js"

export const acquire = ({ allowInsecure, authUrl, credentials }: Settings, replacing: Option.Option<AccessToken>) =>
  TokenEndpoint.make({ authUrl, credentials: Effect.succeed(credentials), allowInsecure }).pipe(
    Effect.flatMap((endpoint) => endpoint.acquire(replacing)),
    Effect.provide(NodeHttp.layer())
  )
