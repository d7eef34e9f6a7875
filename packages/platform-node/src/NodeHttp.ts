/**
 * The HTTP client for Node: undici with keep-alive, proxies and your own certificates.
 *
 * @since 1.0.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as dispatcher from "./internal/dispatcher.js"

/**
 * Connections, proxy and certificates. Certificates are always checked (RFC 6749 §10.9): no option turns that off, and
 * `NODE_TLS_REJECT_UNAUTHORIZED` has no effect. They are parsed once, when the layer is built. To use a renewed
 * certificate, build the layer again before the old one expires.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The largest number of sockets to one origin, at least 1. Further requests wait for a free socket. Default: no
   * limit.
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
   * may hold several certificates. Default none.
   */
  readonly ca?: string | Uint8Array | ReadonlyArray<string | Uint8Array> | undefined
  /**
   * The client certificate in PEM, followed by its chain, for servers that request one. It is not sent to a proxy.
   * Requires `key`. Default none.
   */
  readonly cert?: string | Uint8Array | undefined
  /** The private key of `cert` in PEM, without a passphrase. Requires `cert`. Default none. */
  readonly key?: Redacted.Redacted | undefined
}

/**
 * Provides the undici dispatcher, for HTTP clients that you build yourself. Fails with `ConfigurationError` when an
 * option or a proxy variable is unusable. The error never contains the value.
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
  Layer.scoped(NodeHttpClient.Dispatcher, dispatcher.make(options))

/**
 * Provides an `HttpClient` that reuses its connections. Fails with `ConfigurationError` when an option or a proxy
 * variable is unusable. Building the layer sends no request.
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
  Layer.provide(NodeHttpClient.layerUndiciWithoutDispatcher, layerDispatcher(options))

/**
 * Like `layer`, with options from the configuration: one `Config` for all options, or one for each. Also fails with
 * Effect's `ConfigError` when a variable is missing or unreadable.
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
