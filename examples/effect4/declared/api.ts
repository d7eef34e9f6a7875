import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Schema } from "effect"
import {
  HttpApi,
  HttpApiClient,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSecurity
} from "effect/http-api"

export class Order
  extends Schema.Class<Order>("Order")({ id: Schema.Int, item: Schema.String })
{}

export class Unauthorized extends Schema.TaggedError<Unauthorized>()(
  "Unauthorized",
  {},
  { httpApiStatus: 401 }
) {}

/** Every endpoint of the API needs a bearer token. */
export class Bearer
  extends HttpApiMiddleware.Service<Bearer>()("example/Bearer", {
    error: Unauthorized,
    security: { bearer: HttpApiSecurity.bearer }
  })
{}

export class StoreApi extends HttpApi.make("store")
  .add(
    HttpApiGroup.make("orders")
      .add(HttpApiEndpoint.get("list", "/orders", { success: Schema.Array(Order) }))
      .add(
        HttpApiEndpoint.post("place", "/orders", {
          payload: Schema.Struct({ item: Schema.String }),
          success: Order
        })
      )
  )
  .middleware(Bearer)
{}

/**
 * The derived client over the authorized client, which joins paths to its `apiUrl`. Do not set `baseUrl` here: it would
 * replace `apiUrl` and its path.
 */
export const storeClient = Effect.flatMap(
  AuthorizedHttpClient.AuthorizedHttpClient,
  (httpClient) => HttpApiClient.makeWith(StoreApi, { httpClient })
)

/** The same over the plain `HttpClient` that `AuthorizedHttpClient.layerHttpClient` provides. */
export const plainStoreClient = (baseUrl: string) => HttpApiClient.make(StoreApi, { baseUrl })
