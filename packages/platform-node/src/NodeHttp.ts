/**
 * The HTTP client for Node: undici with keep-alive, proxies and your own certificates.
 *
 * @since 1.0.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as bun from "./internal/bun.js"
import { decode } from "./internal/decoding.js"
import * as dispatcher from "./internal/dispatcher.js"
import * as proxy from "./internal/proxy.js"

/**
 * Connections, proxy and certificates, or a dispatcher of your own. Certificates are always checked (RFC 6749 §10.9):
 * no option turns that off, and `NODE_TLS_REJECT_UNAUTHORIZED` has no effect. They are parsed once, when the layer is
 * built. To use a renewed certificate, build the layer again before the old one expires.
 *
 * Bun replaces undici. There, `fetch` sends all requests and reads the proxy variables, and layers fail with
 * `ConfigurationError` if you set an option, except `proxy: "env"`. Bun sends even requests to this machine through the
 * proxy, unless `NO_PROXY` names it. On Deno, undici sends all requests, because Deno's `fetch` ignores the options.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The largest number of sockets to one origin, at least 1. Further requests wait for a free socket. Token requests of
   * `NodeStoreAuth` and `PromiseStoreAuth` have as many of their own. Default: no limit.
   */
  readonly connections?: number | undefined
  /**
   * The proxy. `"env"`, the default, uses `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, see `layer`. An http or https URL
   * sends all requests through that proxy, with the user name and password in the URL. `"none"` ignores the
   * environment. Requests to this machine (`localhost`, `*.localhost`, `127.0.0.0/8`, `[::1]`) never go through a
   * proxy.
   */
  readonly proxy?: URL | "env" | "none" | undefined
  /**
   * Certificate authorities in PEM, in addition to those that Node trusts (including `NODE_EXTRA_CA_CERTS`). One text
   * may hold several certificates. Under `--use-openssl-ca`, where Node trusts the files of OpenSSL, `ca` replaces
   * them: include them in `ca`, or use `--use-system-ca` or `NODE_EXTRA_CA_CERTS` instead. Default none.
   */
  readonly ca?: string | Uint8Array | ReadonlyArray<string | Uint8Array> | undefined
  /**
   * The client certificate in PEM, followed by its chain, for servers that request one. It is not sent to a proxy.
   * Requires `key`. Default none.
   */
  readonly cert?: string | Uint8Array | undefined
  /** The private key of `cert` in PEM, without a passphrase. Requires `cert`. Default none. */
  readonly key?: Redacted.Redacted | undefined
  /**
   * An undici dispatcher of your own, such as a `MockAgent`, for all requests. It may come from any version of undici.
   * It stays open when the scope closes, and its responses arrive as it returns them, compressed or not. Not allowed
   * together with another option. Default: one with the other options.
   */
  readonly dispatcher?: Dispatcher | undefined
}

/**
 * A dispatcher of undici, in any of its versions, such as an `Agent` or a `MockAgent`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Dispatcher {
  /** Sends a request, and calls a handler with its response. */
  readonly dispatch: (...parameters: never) => unknown
  /** Sends a request, and returns a promise of its response. */
  readonly request: (...parameters: never) => unknown
}

/**
 * Provides the undici dispatcher, for HTTP clients that you build yourself. It decodes compressed responses. Fails with
 * `ConfigurationError` when an option or a proxy variable is unusable. The error never contains the value.
 *
 * When the scope closes, requests in flight fail and all sockets close at once.
 *
 * @example
 * ```ts
 * import { NodeHttpClient } from "@effect/platform-node"
 * import { NodeHttp } from "@store-api/platform-node"
 * import { Layer } from "effect"
 *
 * const HttpLive = NodeHttpClient.layerUndiciWithoutDispatcher.pipe(
 *   Layer.provide(NodeHttp.layerDispatcher({ connections: 32 }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerDispatcher = (
  options: Options = {}
): Layer.Layer<NodeHttpClient.Dispatcher, ConfigurationError> =>
  Layer.scoped(
    NodeHttpClient.Dispatcher,
    Effect.map(
      dispatcher.make(options),
      (made) => options.dispatcher === undefined ? decode(made) : made
    )
  )

/**
 * Provides an `HttpClient` that reuses its connections, and decodes responses that are compressed with gzip, deflate
 * (with the header of zlib, RFC 9110 §8.4.1.2, or without), br, or zstd where Node has it, and with several of them. It
 * does not ask for compression: for that, set the header `Accept-Encoding`. Fails with `ConfigurationError` when an
 * option or a proxy variable is unusable. Building the layer sends no request.
 *
 * undici reads the proxy variables. `http_proxy` takes precedence over `HTTP_PROXY`, and so on. `HTTPS_PROXY` defaults
 * to `HTTP_PROXY`. An empty variable means no proxy. The layer reads both when it is built, and `NO_PROXY` at each
 * request. `NO_PROXY` lists hosts, separated by commas or spaces: a name includes its subdomains, `name:8080` is
 * limited to that port, and `*` matches every host. Address ranges are not supported. Requests to this machine need no
 * entry. Every request through a proxy uses a tunnel (`CONNECT`), also over http.
 *
 * @example
 * ```ts
 * import { NodeHttp } from "@store-api/platform-node"
 * import { readFileSync } from "node:fs"
 *
 * const HttpLive = NodeHttp.layer({
 *   connections: 32,
 *   proxy: new URL("http://proxy.example:3128"),
 *   ca: readFileSync("corporate-ca.pem")
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<HttpClient.HttpClient, ConfigurationError> =>
  Layer.suspend(() =>
    bun.isRunning() ? bun.layer<keyof Options>(options) : layerUndici(options)
  )

const layerUndici = (options: Options) =>
  Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, describeProxy)).pipe(
    // Fresh, because a program that builds this layer twice would use the first dispatcher for both.
    Layer.provide(Layer.fresh(NodeHttpClient.layerUndiciWithoutDispatcher)),
    Layer.provide(layerDispatcher(options))
  )

/** The error of undici has the status of the proxy in its cause only. */
const describeProxy = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(client, (response, request) =>
    Effect.mapError(response, (error) => {
      const description = proxy.describeRefusal(error.cause)
      return description === undefined
        ? error
        : new HttpClientError.RequestError({
          request,
          reason: "Transport",
          cause: error.cause,
          description
        })
    }))

/**
 * Like `layer`, with options from the configuration: one `Config` for all options, or one for each. Also fails with
 * Effect's `ConfigError` when a variable is missing or unreadable.
 *
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { NodeHttp } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const HttpLive = NodeHttp.layerConfig({
 *   connections: Config.integer("STORE_API_CONNECTIONS").pipe(Config.withDefault(32))
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<HttpClient.HttpClient, ConfigurationError | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))
