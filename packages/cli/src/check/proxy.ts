/** The proxy of a URL by the environment. Undici does not say which one it takes; a test compares the two. */
import { isLoopback } from "@store-api/core/AuthorizedHttpClient"

type Environment = Readonly<Record<string, string | undefined>>

export interface Proxy {
  readonly url: URL
  /** The variable that names it. */
  readonly variable: string
}

export const proxyFor = (url: URL, environment: Environment): Proxy | undefined => {
  if (isLoopback(url) || isExempt(url, variable(environment, "NO_PROXY").value)) return undefined
  const http = variable(environment, "HTTP_PROXY")
  const https = variable(environment, "HTTPS_PROXY")
  const { name, value } = url.protocol === "https:" && https.value !== "" ? https : http
  return URL.canParse(value) ? { url: new URL(value), variable: name } : undefined
}

/** The lower-case name counts first, even if it is empty. */
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

export const portOf = ({ port, protocol }: URL): string => port !== "" ? port : protocol === "https:" ? "443" : "80"
