/**
 * Shares one access token between processes: a `TokenStore` on Redis for `@store-api/core`.
 *
 * @since 1.0.0
 */
export * as RedisTokenStore from "./RedisTokenStore.js"
