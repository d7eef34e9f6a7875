import { effectCache, effectCachedWithTtl, store } from "./effect.js"
import {
  azureRestPipeline,
  badgatewayOAuth2Fetch,
  googleIdentityPool,
  googleRefreshHandler,
  openidClient,
  simpleOauth2
} from "./libraries.js"
import type { Peer } from "./Peer.js"

/** Our library first. */
export const peers: ReadonlyArray<Peer> = [
  store,
  effectCache,
  effectCachedWithTtl,
  azureRestPipeline,
  badgatewayOAuth2Fetch,
  googleIdentityPool,
  googleRefreshHandler,
  simpleOauth2,
  openidClient
]

/** The margin for tokens of this lifetime: 5 minutes as in most libraries, or a quarter of a shorter lifetime. */
export const aheadOf = (life: number): number => Math.min(300, life / 4)
