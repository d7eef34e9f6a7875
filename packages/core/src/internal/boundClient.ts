import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as Effect from "effect/Effect"
import { UntrustedOriginError } from "../AccessTokenError.js"
import * as manualRedirect from "./manualRedirect.js"
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
      const cause = new UntrustedOriginError({ origin, trusted: origins })
      return new HttpClientError.RequestError({ request, reason: "InvalidUrl", cause, description: cause.message })
    }))
