/** The steps to a server: its name, its port, a proxy, its certificate. */
import * as Dns from "node:dns/promises"
import { once } from "node:events"
import * as Http from "node:http"
import * as Net from "node:net"
import * as Tls from "node:tls"
import * as Undici from "@effect/platform-node/Undici"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import {
  type CommandError,
  refusedError,
  systemCode,
  unavailableError
} from "../../CommandError.js"

/** Why a step failed: what it found, and an error whose message says what to do. */
export class StepFailure extends Data.TaggedError("StepFailure")<
  { readonly detail: string; readonly error: CommandError }
> {}

export const failStep = (detail: string, error: CommandError): StepFailure =>
  new StepFailure({ detail, error })

/** The longest wait of a step. */
export const limit = "10 seconds"

/** A server or a proxy. */
export type Target = ReturnType<typeof targetOf>

/** `setting`: the flag or the variable of the URL. */
export const targetOf = (url: URL, setting: string) => {
  const port = url.port !== "" ? url.port : url.protocol === "https:" ? "443" : "80"
  // Only a URL has brackets around an address.
  return {
    url,
    setting,
    port: Number(port),
    host: url.hostname.replace(/^\[|\]$/g, ""),
    at: `${url.hostname}:${port}`
  }
}

/** Finds which proxy undici uses, if any, from the first connection that it would make. */
export const proxyFor = ({ url }: Target) =>
  Effect.async<Target | undefined>((resume) => {
    const names = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].slice(
      url.protocol === "https:" ? 0 : 2
    )
    const setting = names.find((name) => process.env[name]) ?? "the environment"
    const agent = new Undici.EnvHttpProxyAgent({
      proxyTunnel: true,
      connect: () => resume(Effect.succeed(undefined)),
      clientFactory: (proxy) =>
        new Undici.Client(proxy, {
          connect: () => resume(Effect.succeed(targetOf(proxy, setting)))
        })
    })
    void agent.request({ origin: url.origin, path: "/", method: "GET" })
  })

export const lookUp = (target: Target) =>
  Effect.map(
    attempt("lookup", target, () => Dns.lookup(target.host, { all: true })),
    (addresses) => ({ detail: addresses.map(({ address }) => address).join(", ") })
  )

/** Connects until the scope ends. */
export const connect = (target: Target) =>
  Effect.gen(function*() {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => Net.connect(target.port, target.host)),
      (socket) => Effect.sync(() => socket.destroy())
    )
    yield* waitFor(socket, "connect", "connect", target)
    return { socket, detail: `${socket.remoteAddress ?? ""} port ${socket.remotePort ?? ""}` }
  })

/** Opens a tunnel through the proxy, requested as the HTTP client does it. */
export const openTunnel = (connection: Net.Socket, proxy: Target, { at }: Target) =>
  Effect.gen(function*() {
    const { password, protocol, username } = proxy.url
    const user = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString("base64")
    const hasUser = username !== "" && password !== ""
    const request = Http.request({
      method: "CONNECT",
      path: at,
      headers: { Host: at, ...(hasUser && { "Proxy-Authorization": `Basic ${user}` }) },
      createConnection: () => protocol === "https:" ? secure(connection, proxy) : connection
    })
    const step = `tunnel to ${at}`
    const event = yield* waitFor(request.end(), "connect", step, proxy)
    const [{ statusCode }, socket] = event as [Http.IncomingMessage, Net.Socket] // as Node documents it
    if (statusCode !== 200) return yield* whyNot(step, String(statusCode), proxy)
    return { socket, detail: `to ${at}` }
  })

export const performHandshake = (connection: Net.Socket, target: Target) =>
  Effect.gen(function*() {
    const socket = secure(connection, target)
    yield* waitFor(socket, "secureConnect", "handshake", target)
    return { detail: `${socket.getProtocol() ?? "TLS"}, certificate trusted` }
  })

/** Trusts the authorities that Node trusts, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says. */
const secure = (socket: Net.Socket, { host }: Target) =>
  Tls.connect({
    socket,
    host,
    servername: Net.isIP(host) === 0 ? host : "",
    rejectUnauthorized: true
  })

/** Waits for an event. Later errors are ignored, because the next step notices that the connection is gone. */
const waitFor = (
  emitter: Net.Socket | Http.ClientRequest,
  event: string,
  step: string,
  target: Target
) =>
  Effect.suspend(() => {
    emitter.on("error", () => undefined)
    return attempt(step, target, (signal) => once(emitter, event, { signal }))
  })

/** A server may never respond, so each wait is limited and interruptible. */
const attempt = <A>(step: string, target: Target, run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (error) => systemCode(error) ?? "no reason given" })
    .pipe(
      Effect.timeoutFail({ duration: limit, onTimeout: () => `no response in ${limit}` }),
      Effect.mapError((code) => whyNot(step, code, target))
    )

const ofNetwork =
  "Check the network and its firewall, and whether it needs a proxy (HTTPS_PROXY)."
const ofTunnel =
  "Have the proxy allow it, or list the server in NO_PROXY if a direct connection works."
const untrustedText = "the certificate is from an authority that this machine does not trust"
const ofCompany =
  "If the authority belongs to your company, set NODE_EXTRA_CA_CERTS to the file of its certificate."

/** `code`: that of the system, or the status of a proxy. */
const whyNot = (step: string, code: string, { at, host, setting }: Target) => {
  const ofService = `Check host and port in ${setting}, and whether the service runs there.`
  const ofUser =
    `Check the user name and password for the proxy: ${setting}=http://user:password@host:port.`
  const ofTls = `Check that ${setting} names a port that speaks TLS 1.2 or newer.`
  const causes: ReadonlyArray<readonly [RegExp, what: string, remedy: string]> = [
    [
      /^lookup ENOTFOUND/,
      `${host} is not known`,
      `Check the host in ${setting}, and that this network knows it.`
    ],
    [
      /^lookup/,
      `${host} could not be looked up`,
      "Check the name servers of this machine and its network."
    ],
    [/^connect ECONNREFUSED/, `${at} refused the connection`, ofService],
    [/^connect/, `cannot connect to ${at}`, ofNetwork],
    [/^tunnel .* 407$/, `the proxy ${host} refused the connection`, ofUser],
    [/^tunnel .* \d+$/, `the proxy ${host} refuses a ${step}`, ofTunnel],
    [
      /^tunnel/,
      `the proxy ${host} opened no ${step}`,
      `Check that ${setting} names a proxy that runs.`
    ],
    [
      /EXPIRED/,
      "the certificate has expired",
      "Its owner must renew it, unless the system clock is wrong."
    ],
    [/NOT_YET_VALID/, "the certificate is not valid yet", "Check the system clock."],
    [
      /ALTNAME_INVALID/,
      `the certificate is not valid for ${host}`,
      `Check the host in ${setting}.`
    ],
    [/SELF_SIGNED|CERT_SIGNATURE|GET_ISSUER|VERIFY_LEAF/, untrustedText, ofCompany],
    [/CERT/, "the certificate cannot be trusted", `Check ${setting} and the system clock.`],
    [
      /WRONG_VERSION|TOO_LONG|EPROTO/,
      `${at} does not speak TLS`,
      `Check scheme and port in ${setting}.`
    ]
  ]
  const cause = causes.find(([pattern]) => pattern.test(`${step} ${code}`))
  const [, what, remedy] = cause ?? [/^/, "the handshake failed", ofTls]
  // A certificate and a password stay as they are.
  const isLasting = what.startsWith("the certificate") || code === "407"
  const error = isLasting ? refusedError(remedy) : unavailableError(remedy)
  return failStep(`${what} (${code})`, error)
}
