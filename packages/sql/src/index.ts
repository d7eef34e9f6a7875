/**
 * Shares one access token between processes: a `TokenStore` on a SQL database for `@store-api/core`.
 *
 * @since 1.0.0
 */
export * as SqlTokenStore from "./SqlTokenStore.js"
