import {
  HttpApi,
  HttpApiClient,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity
} from "@effect/platform"
import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Schema } from "effect"

export class Order
  extends Schema.Class<Order>("Order")({ id: Schema.Int, item: Schema.String })
{}

export class Unauthorized extends Schema.TaggedError<Unauthorized>()(
  "Unauthorized",
  {},
  HttpApiSchema.annotations({ status: 401 })
) {}

/** Every endpoint of the API needs a bearer token. */
export class Bearer extends HttpApiMiddleware.Tag<Bearer>()("example/Bearer", {
  failure: Unauthorized,
  security: { bearer: HttpApiSecurity.bearer }
}) {}

export class StoreApi extends HttpApi.make("store")
  .add(
    HttpApiGroup.make("orders")
      .add(HttpApiEndpoint.get("list", "/orders").addSuccess(Schema.Array(Order)))
      .add(
        HttpApiEndpoint.post("place", "/orders").setPayload(
          Schema.Struct({ item: Schema.String })
        ).addSuccess(Order)
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
