import { StoreAuth } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Effect } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"

/** Turns the 403 of a gateway into the 401 that it should be, if its body says that the token has expired. */
const expiredAs401 = HttpClient.transformResponse(
  Effect.flatMap((response: HttpClientResponse.HttpClientResponse) =>
    response.status === 403
      ? Effect.map(response.text, (body) =>
        HttpClientResponse.fromWeb(
          response.request,
          new Response(body, {
            status: /token.*expired/i.test(body) ? 401 : 403,
            headers: response.headers
          })
        ))
      : Effect.succeed(response)
  )
)

/** Replaces the token and repeats the request after such a 403, as after a 401. */
export const StoreAuthBehindGateway = NodeStoreAuth.layerConfig(
  Config.map(StoreAuth.config(), (options) => ({ ...options, transformClient: expiredAs401 }))
)
