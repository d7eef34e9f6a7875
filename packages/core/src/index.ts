/**
 * OAuth 2.0 access tokens for the store API. Exports one namespace per module.
 *
 * @since 1.0.0
 */
export * as AccessToken from "./AccessToken.js"
export * as AccessTokenError from "./AccessTokenError.js"
export * as AccessTokenMetrics from "./AccessTokenMetrics.js"
export * as AccessTokenProvider from "./AccessTokenProvider.js"
export * as AuthorizedHttpClient from "./AuthorizedHttpClient.js"
export * as ClientCredentials from "./ClientCredentials.js"
export * as SharedTokenSource from "./SharedTokenSource.js"
export * as StoreAuth from "./StoreAuth.js"
export * as TokenEndpoint from "./TokenEndpoint.js"
export * as TokenRequest from "./TokenRequest.js"
export * as TokenResponse from "./TokenResponse.js"
export * as TokenSource from "./TokenSource.js"
export * as TokenStore from "./TokenStore.js"
