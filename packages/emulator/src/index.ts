/**
 * The store API suite's access-token service and a protected API on loopback, for development and tests.
 *
 * @since 1.0.0
 */
export * as Client from "./Client.js"
export * as Emulator from "./Emulator.js"
export * as EmulatorError from "./EmulatorError.js"
export * as EmulatorOptions from "./EmulatorOptions.js"
export * as Fault from "./Fault.js"
export * as IssuedToken from "./IssuedToken.js"
export * as RecordedRequest from "./RecordedRequest.js"
export * as Scenario from "./Scenario.js"
