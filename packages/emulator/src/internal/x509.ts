/** Certificates of an authority that exists only in this process: just enough of X.509 (RFC 5280) and DER for tests. */
import { Buffer } from "node:buffer"
import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from "node:crypto"

export interface Identity {
  readonly name: string
  readonly privateKey: KeyObject
  /** The certificate, as PEM. */
  readonly cert: string
  /** The private key, as PEM. */
  readonly key: string
}

export interface Leaf {
  readonly dnsNames: ReadonlyArray<string>
  readonly addresses: ReadonlyArray<Uint8Array>
  readonly expired: boolean
  /** Absent: the certificate is self-signed. */
  readonly issuer: Identity | undefined
}

const der = (tag: number, ...contents: ReadonlyArray<Uint8Array>) => {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...contents: ReadonlyArray<Uint8Array>) => der(0x30, ...contents)
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"))
const integer = (bytes: Uint8Array) => der(0x02, bytes)
const isTrue = der(0x01, Buffer.from([0xff]))
const commonName = (name: string) => sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))))
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"))

/** Fixed times, so that no clock is read; UTCTime cannot express years after 2049. */
const validity = (expired: boolean) =>
  sequence(
    ...["000101000000Z", expired ? "010101000000Z" : "491231235959Z"].map((time) => der(0x17, Buffer.from(time)))
  )

const extension = (id: string, value: Uint8Array, ...critical: ReadonlyArray<Uint8Array>) =>
  sequence(oid(id), ...critical, der(0x04, value))

const basicConstraints = (isAuthority: boolean) =>
  extension("551d13", sequence(...(isAuthority ? [isTrue] : [])), isTrue)

const signed = (parts: {
  readonly name: string
  readonly expired: boolean
  readonly extensions: ReadonlyArray<Uint8Array>
  readonly issuer: Identity | undefined
}): Identity => {
  const { name } = parts
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const issuer = parts.issuer ?? { name, privateKey }
  const content = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    // The first byte makes the serial number positive.
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(8)])),
    ecdsaWithSha256,
    commonName(issuer.name),
    validity(parts.expired),
    commonName(name),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...parts.extensions))
  )
  const signature = der(0x03, Buffer.from([0]), sign("sha256", content, issuer.privateKey))
  return {
    name,
    privateKey,
    cert: new X509Certificate(sequence(content, ecdsaWithSha256, signature)).toString(),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}

export const authority = () =>
  signed({
    name: "Store API emulator, made for this run",
    expired: false,
    extensions: [basicConstraints(true)],
    issuer: undefined
  })

export const leaf = ({ addresses, dnsNames, expired, issuer }: Leaf) => {
  const names = [...dnsNames.map((name) => der(0x82, Buffer.from(name))), ...addresses.map((ip) => der(0x87, ip))]
  const extensions = [basicConstraints(false), extension("551d11", sequence(...names))]
  return signed({ name: dnsNames[0] ?? "", expired, extensions, issuer })
}
