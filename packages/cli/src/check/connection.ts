/** The steps to a server: its name, its port, a proxy, its certificate. */
import * as Dns from "node:dns/promises"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import * as Tls from "node:tls"
import { isLoopback } from "@store-api/core/AuthorizedHttpClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { exitCodes, systemCode } from "../Fault.js"

/** What a step found. A problem comes with one line that says what to do. */
export interface Result {
  readonly detail: string
  readonly remedy?: string | undefined
}

export class Failed extends Data.TaggedError("Failed")<Required<Result> & { readonly code: number }> {}

export const failed = (kind: keyof typeof exitCodes, detail: string, remedy: string): Failed =>
  new Failed({ detail, remedy, code: exitCodes[kind].code })

const codeOf = (error: unknown): string => systemCode(error) ?? "no reason given"

export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>, onTimeout: () => Failed) =>
  Effect.timeoutFail(effect, { duration: "10 seconds", onTimeout })

interface Connected extends Result {
  readonly socket: Net.Socket
}

type Step<A> = Effect.Effect<A, Failed, Scope.Scope>

const unavailable = (what: string, remedy: string) => failed("unavailable", what, remedy)

const networkRemedy = "Check the network and its firewall, and whether it needs a proxy (HTTPS_PROXY)."
const nameServerRemedy = "Check the name servers of this machine and its network."

/** The host of a URL, without the brackets of an address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

/** `setting`: the flag or the variable of the URL. */
export const lookup = (url: URL, setting: string): Effect.Effect<Result, Failed> => {
  const host = hostOf(url)
  if (Net.isIP(host) !== 0) return Effect.succeed({ detail: `${host} is an address` })
  const whyNot = (code: string) =>
    code === "ENOTFOUND"
      ? unavailable(`${host} is not known (${code})`, `Check the host in ${setting}, and that this network knows it.`)
      : unavailable(`${host} could not be looked up (${code})`, nameServerRemedy)
  return Effect.map(
    inTime(
      Effect.tryPromise({ try: () => Dns.lookup(host, { all: true }), catch: (error) => whyNot(codeOf(error)) }),
      () => unavailable(`no name server responded about ${host}`, nameServerRemedy)
    ),
    (addresses) => ({ detail: `${host} is ${addresses.map(({ address }) => address).join(", ")}` })
  )
}

/** A socket that is open until the scope ends. A server may never respond, so waiting for it is interruptible. */
const opened = <S extends Net.Socket>(
  open: () => S,
  event: "connect" | "secureConnect",
  onError: (error: unknown) => Failed
): Step<S> =>
  Effect.acquireRelease(Effect.sync(open), (socket) => Effect.sync(() => socket.destroy())).pipe(
    Effect.flatMap((socket) =>
      Effect.async<S, Failed>((resume) => {
        socket.on("error", (error) => resume(onError(error)))
        socket.once(event, () => resume(Effect.succeed(socket)))
      })
    )
  )

export const connect = (url: URL, setting: string): Step<Connected> => {
  const at = `${url.hostname}:${portOf(url)}`
  const whyNot = (error: unknown) => {
    // If several addresses were tried, the reason of the first counts.
    const code = codeOf(error instanceof AggregateError ? error.errors[0] ?? error : error)
    const remedy = `Check host and port in ${setting}, and whether the service runs there.`
    return code === "ECONNREFUSED"
      ? unavailable(`${at} refused the connection (${code})`, remedy)
      : unavailable(`cannot connect to ${at} (${code})`, networkRemedy)
  }
  const open = () => Net.connect({ host: hostOf(url), port: Number(portOf(url)) })
  return inTime(opened(open, "connect", whyNot), () => unavailable(`${at} does not respond`, networkRemedy)).pipe(
    Effect.map((socket) => ({ socket, detail: `${socket.remoteAddress ?? ""} port ${socket.remotePort ?? ""}` }))
  )
}

/** The proxy that the environment names for a URL. Undici does not tell which it uses, so a test compares the two. */
export const proxyFor = (url: URL, environment: Environment) => {
  if (isLoopback(url) || isExempt(url, variable(environment, "NO_PROXY").value)) return undefined
  const http = variable(environment, "HTTP_PROXY")
  const https = variable(environment, "HTTPS_PROXY")
  const { name, value } = url.protocol === "https:" && https.value !== "" ? https : http
  return URL.canParse(value) ? { url: new URL(value), variable: name } : undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** The URL of a proxy, and the variable that names it. */
type Proxy = NonNullable<ReturnType<typeof proxyFor>>

/** The lower-case name takes precedence, even if it is empty. */
const variable = (environment: Environment, name: string) => {
  const lower = environment[name.toLowerCase()]
  return lower === undefined ? { name, value: environment[name] ?? "" } : { name: name.toLowerCase(), value: lower }
}

/** A name includes its subdomains; `*` includes all hosts, if it is the whole list. */
const isExempt = (url: URL, list: string): boolean =>
  list === "*" || list.split(/[\s,]+/).some((entry) => {
    const [, name = "", port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    const host = name.replace(/^\*?\./, "")
    return host !== "" && (url.hostname === host || url.hostname.endsWith(`.${host}`)) &&
      (port === undefined || port === portOf(url))
  })

const portOf = ({ port, protocol }: URL): string => port !== "" ? port : protocol === "https:" ? "443" : "80"

/** A tunnel through the proxy, requested as the HTTP client does it. */
export const tunnel = (proxy: Proxy, url: URL): Step<Connected> => {
  const path = `${url.hostname}:${portOf(url)}`
  const { hostname, password, protocol, username } = proxy.url
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = username === "" || password === ""
    ? {}
    : { "Proxy-Authorization": `Basic ${Buffer.from(user).toString("base64")}` }
  const host = hostOf(proxy.url)
  // Otherwise Node would check the certificate of the proxy for the name in the Host header.
  const tls = { servername: Net.isIP(host) === 0 ? host : "", rejectUnauthorized: true }
  const because = (what: string, remedy = `Check that ${proxy.variable} names a proxy that runs.`) =>
    unavailable(`the proxy ${hostname} ${what}`, remedy)
  const whyNot = (status: number) =>
    status === 407
      ? because("needs a user name and a password (407)", `Add them: ${proxy.variable}=http://user:password@host:port.`)
      : because(
        `refuses a tunnel to ${path} (${status})`,
        `Have the proxy allow ${path}, or list the host in NO_PROXY if a direct connection works.`
      )
  const connected = Effect.gen(function*() {
    const request = yield* Effect.acquireRelease(
      Effect.sync(() =>
        (protocol === "https:" ? Https : Http).request({
          ...{ ...tls, host, port: portOf(proxy.url), method: "CONNECT", path, agent: false },
          headers: { Host: path, ...authorization }
        })
      ),
      // The request does not own the socket of an open tunnel.
      (request) => Effect.sync(() => void request.destroy().socket?.destroy())
    )
    return yield* Effect.async<Connected, Failed>((resume) => {
      const end = ({ statusCode = 0 }: Http.IncomingMessage, socket: Net.Socket) => {
        // The request no longer listens for errors of the socket. The handshake notices a closed tunnel.
        socket.on("error", () => undefined)
        resume(statusCode === 200 ? Effect.succeed({ socket, detail: `to ${url.host}` }) : whyNot(statusCode))
      }
      request.once("connect", end)
      request.once("response", (response) => end(response, response.socket))
      request.on("error", (error) => resume(because(`closed the connection (${codeOf(error)})`)))
      request.end()
    })
  })
  return inTime(connected, () => because("does not respond"))
}

/** The remedy if a request had no response because the port of an http URL speaks TLS, with any certificate. */
export const tlsRemedy = (url: URL, setting: string): Effect.Effect<string | undefined> =>
  url.protocol !== "http:" ? Effect.succeed(undefined) : connect(url, setting).pipe(
    Effect.flatMap(({ socket }) => handshake(socket, url, setting)),
    Effect.match({ onFailure: ({ code }) => code === exitCodes.refused.code, onSuccess: () => true }),
    Effect.map((speaksTls) => speaksTls ? `The port speaks TLS: try https:// in ${setting}.` : undefined),
    Effect.scoped
  )

/** The handshake, with the authorities that Node trusts. */
export const handshake = (socket: Net.Socket, url: URL, setting: string): Step<Result> => {
  const host = hostOf(url)
  const open = () =>
    Tls.connect({ socket, rejectUnauthorized: true, ...(Net.isIP(host) === 0 && { servername: host }), host })
  return inTime(
    opened(open, "secureConnect", (error) => whyNoHandshake(codeOf(error), host, setting)),
    () => unavailable("the handshake does not complete", `Check that ${setting} names a port that speaks TLS.`)
  ).pipe(Effect.map((secure) => ({ detail: `${secure.getProtocol() ?? "TLS"}, certificate trusted` })))
}

const whyNoHandshake = (code: string, host: string, setting: string): Failed => {
  const authority = "is from an authority that this machine does not trust"
  const ofCompany = "If the authority belongs to your company, set NODE_EXTRA_CA_CERTS to the file of its certificate."
  const [, what, remedy] = ([
    [/EXPIRED/, "has expired", "Its owner must renew it, unless the system clock is wrong."],
    [/NOT_YET_VALID/, "is not valid yet", "Check the system clock."],
    [/ALTNAME_INVALID/, `is not valid for ${host}`, `Check the host in ${setting}.`],
    [/SELF_SIGNED|CERT_SIGNATURE|GET_ISSUER|VERIFY_LEAF/, authority, ofCompany],
    [/CERT/, "cannot be trusted", `Check ${setting} and the system clock.`]
  ] as const).find(([known]) => known.test(code)) ?? []
  if (what !== undefined) return failed("refused", `the certificate ${what} (${code})`, remedy)
  return /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|EPROTO/.test(code)
    ? unavailable(`${host} does not speak TLS at this port (${code})`, `Check scheme and port in ${setting}.`)
    : unavailable(`the handshake failed (${code})`, `Check that ${setting} names a port that speaks TLS 1.2 or newer.`)
}
