import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import Tls from "node:tls"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { unusable } from "./options.js"

type Pem = string | Uint8Array

/** Those of `NodeHttp.Options` that are about TLS. */
export interface Options {
  readonly ca?: Pem | ReadonlyArray<Pem> | undefined
  readonly cert?: Pem | undefined
  readonly key?: Redacted.Redacted | undefined
}

/**
 * Creates the contexts once, because parsing all authorities takes longer than a handshake,
 * and because a malformed certificate must fail the layer. A proxy does not get the client
 * certificate. A context also keeps the key out of the output of `inspect` on undici's
 * objects.
 */
export const make = (
  { ca, cert, key }: Options
) =>
  Effect.gen(function*() {
    const authorities = ca === undefined
      ? {}
      : { ca: [...(yield* trustedByNode), ...(yield* readCertificates(ca))] }
    const client = yield* readClientCertificate(cert, key)
    return {
      forServers: yield* makeSettings({ ...authorities, ...client }),
      forProxies: yield* makeSettings(authorities)
    }
  })

const makeSettings = (
  options: Tls.SecureContextOptions
) =>
  Effect.map(
    // Node has accepted the certificate and the key separately.
    attempt("http.key", "is not the private key of cert", () =>
      Tls.createSecureContext(options)),
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect.
    (secureContext) => ({ rejectUnauthorized: true, secureContext })
  )

/** Node's option `ca` replaces the default authorities. */
const trustedByNode = Effect.suspend((): Effect.Effect<ReadonlyArray<string | Buffer>> => {
  // From Node 22.15; the types are those of Node 20.
  const { getCACertificates } = Tls as {
    readonly getCACertificates?: (type: "default") => ReadonlyArray<string>
  }
  return getCACertificates === undefined
    ? Effect.map(
      extraCertificates,
      (extra) => [...Tls.rootCertificates, ...Option.toArray(extra)]
    )
    : Effect.succeed(getCACertificates("default"))
})

/** Node reads this file when it starts, and ignores it if it is unreadable. */
const extraCertificates = Effect.option(
  Effect.try(() => Fs.readFileSync(process.env["NODE_EXTRA_CA_CERTS"] ?? ""))
)

/** Parses each certificate, because Node ignores a text without any. */
const readCertificates = (ca: NonNullable<Options["ca"]>) => {
  const reason = "must contain certificates in PEM"
  return Effect.forEach(
    [ca].flat(),
    (source) =>
      Effect.gen(function*() {
        const text = yield* attempt("http.ca", reason, () => textOf(source))
        const found = text.match(/-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----/g)
        if (found === null) return yield* unusable("http.ca", reason)
        yield* attempt("http.ca", reason, () =>
          found.map((text) =>
            new Crypto.X509Certificate(text)
          ))
        return found.join("\n")
      })
  )
}

const readClientCertificate = (
  cert: Options["cert"],
  key: Options["key"]
) =>
  Effect.gen(function*() {
    if (cert === undefined && key === undefined) return {}
    if (cert === undefined) return yield* unusable("http.cert", "is missing, key needs it")
    if (key === undefined) return yield* unusable("http.key", "is missing, cert needs it")
    if (!Redacted.isRedacted(key)) {
      return yield* unusable("http.key", "must be wrapped with Redacted.make")
    }
    const certificate = yield* attempt("http.cert", "must be a certificate in PEM", () => {
      const text = textOf(cert)
      // TLS ignores an empty certificate or key.
      Tls.createSecureContext({ cert: text === "" ? "none" : text })
      return text
    })
    const privateKey = Redacted.value(key)
    yield* attempt(
      "http.key",
      "must be a private key in PEM, without a passphrase",
      () => Crypto.createPrivateKey(privateKey)
    )
    return { cert: certificate, key: privateKey }
  })

/** Drops Node's own error, which may contain the value. */
const attempt = <A>(
  option: string,
  reason: string,
  evaluate: () => A
) => Effect.mapError(Effect.try(evaluate), () => unusable(option, reason))

/** Throws for other types. */
const textOf = (source: Pem): string =>
  typeof source === "string" ? source : new TextDecoder().decode(source)
