/**
 * Access tokens for the store API on Node. Exports one namespace per module.
 *
 * @since 1.0.0
 */
export * as ClientAssertion from "./ClientAssertion.js"
export * as FileTokenStore from "./FileTokenStore.js"
export * as NodeHttp from "./NodeHttp.js"
export * as NodeStoreAuth from "./NodeStoreAuth.js"
export * as PromiseStoreAuth from "./PromiseStoreAuth.js"
