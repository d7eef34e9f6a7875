/** How a token request proves who the client is. */
import * as TokenRequest from "@store-api/core/TokenRequest"
import * as ClientAssertion from "@store-api/platform-node/ClientAssertion"
import type { Settings } from "../settings/settings.js"

export const requestOf = (
  { assertionPath }: Settings
): TokenRequest.TokenRequest | undefined =>
  assertionPath === undefined
    ? undefined
    : TokenRequest.clientAssertion(ClientAssertion.fromFile(assertionPath))
