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

/** Ours first. */
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

/** The margin for tokens of this lifetime: the default of most peers, or a quarter of a shorter lifetime, as we do. */
export const aheadOf = (life: number): number => Math.min(300, life / 4)
