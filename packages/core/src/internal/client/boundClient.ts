import * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import { UntrustedOriginError } from "../../AccessTokenError.js"
import * as httpErrors from "../httpErrors.js"
import * as manualRedirect from "../manualRedirect.js"
import { originOf } from "./trustedOrigins.js"

/**
 * Returns a client that sends requests only to the given origins. The check comes after everything that wraps this
 * client, including `followRedirects`, which bypasses `mapRequest`. `fetch` follows no redirects.
 */
export const make = (
  client: HttpClient.HttpClient,
  origins: ReadonlyArray<string>
): Effect.Effect<HttpClient.HttpClient> =>
  Effect.map(manualRedirect.make, (withoutRedirects) =>
    HttpClient.transform(client, (response, request) => {
      const origin = originOf(request.url)
      if (origins.includes(origin)) return withoutRedirects(response)
      return Effect.fail(httpErrors.make("InvalidUrl", request, new UntrustedOriginError({ origin, trusted: origins })))
    }))
