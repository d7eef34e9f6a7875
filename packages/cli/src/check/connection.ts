/** The way to a server: its name, its port, a proxy between, its certificate. */
import * as Dns from "node:dns"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import * as Tls from "node:tls"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { exitCodes } from "../Fault.js"
import { portOf, type Proxy } from "./proxy.js"
import { codeOf, Failed, inTime } from "./Step.js"

const unavailable = (what: string, remedy: string) => new Failed({ what, remedy, code: exitCodes.unavailable })

/** The host of a URL, without the brackets of an address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

/** `setting`: where the name comes from. */
export const lookup = (url: URL, setting: string): Effect.Effect<string, Failed> => {
  const host = hostOf(url)
  if (Net.isIP(host) !== 0) return Effect.succeed(`${host} is an address`)
  return inTime(
    Effect.async<string, Failed>((resume) =>
      Dns.lookup(host, { all: true }, (error, addresses) =>
        resume(
          error === null
            ? Effect.succeed(`${host} is ${addresses.map(({ address }) => address).join(", ")}`)
            : Effect.fail(
              error.code === "ENOTFOUND"
                ? unavailable(
                  `${host} is not known (ENOTFOUND)`,
                  `Check the host in ${setting} for a typing error, and whether its name is known in this network.`
                )
                : unavailable(
                  `${host} could not be looked up (${codeOf(error)})`,
                  "Check the name servers of this machine and its network."
                )
            )
        ))
    ),
    () => unavailable(`no answer about ${host}`, "Check the name servers of this machine and its network.")
  )
}

/**
 * Open until the scope ends. Only the making of a socket is kept from being interrupted: what is waited for, a server may
 * never do.
 */
const kept = <S extends Net.Socket>(open: () => S): Effect.Effect<S, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.sync(open), (socket) => Effect.sync(() => socket.destroy()))

/** When the connection is there, or is not to be had. */
const established = <S extends Net.Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  failed: (error: unknown) => Failed
): Effect.Effect<S, Failed> =>
  Effect.async((resume) => {
    socket.on("error", (error) => resume(Effect.fail(failed(error))))
    socket.once(event, () => resume(Effect.succeed(socket)))
  })

/** `setting`: where host and port come from. */
export const connect = (url: URL, setting: string): Effect.Effect<Net.Socket, Failed, Scope.Scope> => {
  const at = `${url.hostname}:${portOf(url)}`
  return inTime(
    Effect.flatMap(
      kept(() => Net.connect({ host: hostOf(url), port: Number(portOf(url)) })),
      (socket) =>
        established(socket, "connect", (error) => {
          const code = innermost(error)
          return code === "ECONNREFUSED"
            ? unavailable(
              `${at} refused the connection (ECONNREFUSED)`,
              `Check host and port in ${setting}, and whether the service runs there.`
            )
            : unavailable(
              `there is no connection to ${at} (${code})`,
              "Check the network, a firewall between, and whether this network wants a proxy (HTTPS_PROXY)."
            )
        })
    ),
    () =>
      unavailable(
        `${at} does not answer`,
        "Check for a firewall between, and whether this network wants a proxy (HTTPS_PROXY)."
      )
  )
}

/** Where several addresses were tried, the reason of the first. */
const innermost = (error: unknown): string =>
  codeOf(error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error)

/** A tunnel through the proxy, as the HTTP client asks for one. */
export const tunnel = (proxy: Proxy, url: URL): Effect.Effect<Net.Socket, Failed, Scope.Scope> => {
  const to = `${url.hostname}:${portOf(url)}`
  const { hostname, password, username } = proxy.url
  const authorization = username === "" || password === "" ? {} : {
    "Proxy-Authorization": `Basic ${
      Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")
    }`
  }
  const asked = Effect.acquireRelease(
    Effect.sync(() =>
      (proxy.url.protocol === "https:" ? Https : Http).request({
        host: hostOf(proxy.url),
        port: portOf(proxy.url),
        method: "CONNECT",
        path: to,
        headers: { Host: to, ...authorization },
        agent: false
      })
    ),
    (request) =>
      Effect.sync(() => {
        request.destroy()
        // Of a tunnel that is there, the request has let go.
        request.socket?.destroy()
      })
  )
  const answer = (request: Http.ClientRequest) =>
    Effect.async<Net.Socket, Failed>((resume) => {
      const answered = (status: number, socket: Net.Socket) =>
        resume(
          status === 200
            ? Effect.succeed(socket)
            : Effect.fail(
              status === 407
                ? unavailable(
                  `the proxy ${hostname} wants a user name and a password (407)`,
                  `Put them into ${proxy.variable}, as in http://user:password@host:port.`
                )
                : unavailable(
                  `the proxy ${hostname} makes no tunnel to ${to} (${status})`,
                  `Ask who runs the proxy to allow ${to}, or list the host in NO_PROXY if it can be reached without.`
                )
            )
        )
      request.once("connect", ({ statusCode = 0 }, socket) => answered(statusCode, socket))
      request.once("response", ({ socket, statusCode = 0 }) => answered(statusCode, socket))
      request.on("error", (error) =>
        resume(Effect.fail(unavailable(
          `the proxy ${hostname} broke off (${codeOf(error)})`,
          `Check that ${proxy.variable} names a proxy, with the right scheme and port.`
        ))))
      request.end()
    })
  return inTime(
    Effect.flatMap(asked, answer),
    () => unavailable(`the proxy ${hostname} does not answer`, `Check that ${proxy.variable} names a proxy that runs.`)
  )
}

/** The handshake, with the authorities that Node trusts. */
export const handshake = (
  socket: Net.Socket,
  url: URL,
  setting: string
): Effect.Effect<string, Failed, Scope.Scope> => {
  const host = hostOf(url)
  const open = () =>
    Tls.connect({ socket, rejectUnauthorized: true, ...(Net.isIP(host) === 0 && { servername: host }), host })
  return inTime(
    Effect.flatMap(
      kept(open),
      (secure) => established(secure, "secureConnect", (error) => ofHandshake(codeOf(error), host, setting))
    ),
    () => unavailable("the handshake does not end", `Check that ${setting} names a port that speaks TLS.`)
  ).pipe(Effect.map((secure) => `${secure.getProtocol() ?? "TLS"}, certificate trusted`))
}

const ofHandshake = (code: string, host: string, setting: string): Failed => {
  const untrusted = (what: string, remedy: string) =>
    new Failed({ what: `${what} (${code})`, remedy, code: exitCodes.refused })
  switch (code) {
    case "CERT_HAS_EXPIRED":
      return untrusted(
        "the certificate has expired",
        "Its owner has to renew it, unless the clock of this machine is wrong."
      )
    case "CERT_NOT_YET_VALID":
      return untrusted("the certificate is not valid yet", "Set the clock of this machine, which seems to be behind.")
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return untrusted(
        `the certificate is not of ${host}`,
        `Check the host in ${setting}: the certificate is of another.`
      )
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
      return untrusted(
        "the certificate comes from an authority that this machine does not trust",
        "If the authority is your own, or that of a proxy which looks into TLS, name the file of its certificate in " +
          "NODE_EXTRA_CA_CERTS."
      )
    case "ERR_SSL_WRONG_VERSION_NUMBER":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
    case "EPROTO":
      return unavailable(`${host} does not speak TLS at this port (${code})`, `Check scheme and port in ${setting}.`)
    default:
      return /CERT/.test(code)
        ? untrusted("the certificate cannot be trusted", `Check ${setting} and the clock of this machine.`)
        : unavailable(
          `the handshake failed (${code})`,
          `Check that ${setting} names a port that speaks TLS 1.2 or newer.`
        )
  }
}
