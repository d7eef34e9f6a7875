/**
 * The servers of the checks: emulators in another process, controlled over loopback with `fetch` alone.
 */
// Imported by path: the package index reads the environment, for which Deno needs a permission.
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Context, Effect, Schema, type Scope } from "effect"

/** A request as the emulator received it. Its secrets are invented. */
export class Seen extends Schema.Class<Seen>("Seen")({
  kind: Schema.Literal("token", "api", "other"),
  status: Schema.NullOr(Schema.Number),
  contentType: Schema.NullOr(Schema.String),
  authorized: Schema.Boolean,
  body: Schema.String
}) {}

/** The observable state of an emulator. */
export class View extends Schema.Class<View>("View")({
  requests: Schema.Array(Seen),
  elsewhere: Schema.Array(Seen),
  tokens: Schema.Array(Schema.String)
}) {}

/** The options of an emulator. */
export class Setup extends Schema.Class<Setup>("Setup")({
  tokenLife: Schema.NullOr(Schema.String),
  tls: Schema.Boolean
}) {}

/** A started emulator. */
export class Started extends Schema.Class<Started>("Started")({
  id: Schema.Number,
  url: Schema.String,
  elsewhere: Schema.String,
  clientId: Schema.String,
  clientSecret: Schema.String
}) {}

/** The client of an emulator, for a check. */
export interface Emulator extends Schema.Schema.Encoded<typeof Started> {
  readonly view: Effect.Effect<View>
  readonly tokenRequests: Effect.Effect<number>
  readonly revoke: Effect.Effect<void>
  /** Applies the steps of a scenario, each as often as the scenario says or `times` times. */
  readonly fail: (scenario: string, times?: number) => Effect.Effect<void>
}

/** `emulator` starts an emulator for one check, until its scope closes. */
export interface Service {
  readonly emulator: (setup?: Partial<Setup>) => Effect.Effect<Emulator, never, Scope.Scope>
}

export class Laboratory extends Context.Tag("runtimes/Laboratory")<Laboratory, Service>() {}

/** An error of the laboratory is a defect, because it is not the result of a check. */
export const make = (url: string): Effect.Effect<Service, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const send = (request: HttpClientRequest.HttpClientRequest) =>
      client.execute(request).pipe(Effect.flatMap(HttpClientResponse.filterStatusOk), Effect.timeout("10 seconds"))
    const order = (path: string, body: unknown) =>
      send(HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post(url + path), body))
    const done = (path: string, body: unknown = {}) =>
      Effect.asVoid(Effect.flatMap(order(path, body), ({ text }) => text)).pipe(Effect.orDie)

    return Laboratory.of({
      emulator: (setup = {}) =>
        Effect.acquireRelease(
          order("/emulators", new Setup({ tokenLife: null, tls: false, ...setup })).pipe(
            Effect.flatMap(HttpClientResponse.schemaBodyJson(Started)),
            Effect.orDie
          ),
          ({ id }) => done(`/emulators/${id}/stop`)
        ).pipe(Effect.map((started) => {
          const view = send(HttpClientRequest.get(`${url}/emulators/${started.id}`)).pipe(
            Effect.flatMap(HttpClientResponse.schemaBodyJson(View)),
            Effect.orDie
          )
          return {
            ...started,
            view,
            tokenRequests: Effect.map(view, ({ requests }) => requests.filter(({ kind }) => kind === "token").length),
            revoke: done(`/emulators/${started.id}/revoke`),
            fail: (scenario, times) => done(`/emulators/${started.id}/fail`, { scenario, times: times ?? null })
          }
        }))
    })
  })
