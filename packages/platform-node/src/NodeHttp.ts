/**
 * The HTTP client on Node: undici with keep-alive, a proxy, and certificates of your own.
 *
 * @since 0.1.0
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
 * Connections, proxy and certificates. There is no option to trust any certificate, and `NODE_TLS_REJECT_UNAUTHORIZED` does
 * not count (RFC 6749 §10.9: the endpoint's certificate is checked).
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** How many sockets may be open to one origin; further requests wait for one. A whole number from 1; default no bound. */
  readonly connections?: number | undefined
  /**
   * Where requests go through. `"env"`, the default: what `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` say, see `layer`. A URL,
   * http or https: all go through it; its user name and password are sent to it. `"none"`: no proxy, whatever the environment
   * says. Requests to this machine (`localhost`, `*.localhost`, `127.0.0.0/8`, `[::1]`) go through none in any case.
   */
  readonly proxy?: URL | "env" | "none" | undefined
  /**
   * Certificates in PEM that are trusted besides those that Node trusts by itself, `NODE_EXTRA_CA_CERTS` included; one text
   * may hold several. Default none.
   */
  readonly ca?: string | Uint8Array | ReadonlyArray<string | Uint8Array> | undefined
  /**
   * The client's certificate in PEM, its chain after it, for servers that ask for one; not shown to a proxy. It needs `key`.
   * Default none.
   */
  readonly cert?: string | Uint8Array | undefined
  /** The private key of `cert` in PEM, without a passphrase. It needs `cert`. Default none. */
  readonly key?: Redacted.Redacted | undefined
}

/**
 * The undici dispatcher alone, to be shared by clients of your own. Fails with `ConfigurationError` when an option or a
 * proxy variable cannot be used; the error holds no value.
 *
 * When the layer's scope ends, requests that are still running fail and all sockets are closed at once.
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
 * @since 0.1.0
 * @category layers
 */
export const layerDispatcher = (options: Options = {}): Layer.Layer<NodeHttpClient.Dispatcher, ConfigurationError> =>
  Layer.scoped(NodeHttpClient.Dispatcher, dispatcher.make(options))

/**
 * An `HttpClient` that keeps its connections alive between requests. Fails with `ConfigurationError` as
 * `layerDispatcher` does; no request is sent while it is built.
 *
 * The proxy variables are understood as undici does. `http_proxy` counts before `HTTP_PROXY`, and so on; without one for
 * https, that for http is taken; an empty one means no proxy. Both are read when the layer is built, `NO_PROXY` at each
 * request. That lists hosts, separated by commas or spaces: a name stands for its subdomains too, `name:8080` for that
 * port, `*` for all; address ranges are not understood. This machine need not be listed. Every request that goes through
 * a proxy does so in a tunnel (`CONNECT`), those over http too.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<HttpClient.HttpClient, ConfigurationError> =>
  Layer.provide(NodeHttpClient.layerUndiciWithoutDispatcher, layerDispatcher(options))

/**
 * `layer`, its options read from the configuration, each alone or all of them. Fails besides with Effect's `ConfigError`,
 * when one is missing or cannot be read.
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
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<HttpClient.HttpClient, ConfigurationError | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))
