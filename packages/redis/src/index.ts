/**
 * Many processes, one access token: the `TokenStore` of `@store-api/core` on Redis.
 *
 * @since 0.1.0
 */
export * as RedisTokenStore from "./RedisTokenStore.js"
