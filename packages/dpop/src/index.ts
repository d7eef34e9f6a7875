/**
 * Binds the access tokens of `@store-api/core` to a private key (DPoP, RFC 9449), so that a stolen token is useless.
 *
 * @since 1.0.0
 */
export * as Dpop from "./Dpop.js"
