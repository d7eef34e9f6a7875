import { azureRestPipeline } from "./azureRestPipeline.js"
import { badgatewayOAuth2Fetch } from "./badgatewayOAuth2Fetch.js"
import { effectCache, effectCachedWithTtl } from "./effectCaches.js"
import { googleIdentityPool, googleRefreshHandler } from "./googleAuthLibrary.js"
import { openidClient } from "./openidClient.js"
import type { Peer } from "./Peer.js"
import { simpleOauth2 } from "./simpleOauth2.js"
import { store } from "./store.js"

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

/** The margin for tokens of this life: what most of them take by default, or a quarter of a shorter life, as we do. */
export const aheadOf = (life: number): number => Math.min(300, life / 4)
