/** Creates certificates of an authority for this process, with the part of X.509 (RFC 5280) and DER that tests need. */
import { Buffer } from "node:buffer"
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto"

/** A certificate with its private key, both as PEM. */
export interface Identity {
  readonly name: string
  readonly key: string
  readonly cert: string
}

interface SigningOptions {
  /** Default: the certificate is self-signed. */
  readonly issuer?: Identity
  readonly isExpired?: boolean
}

const der = (tag: number, ...contents: ReadonlyArray<Uint8Array>) => {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 0x80
    ? [length]
    : length < 0x100
    ? [0x81, length]
    : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...contents: ReadonlyArray<Uint8Array>) => der(0x30, ...contents)
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"))
const integer = (...bytes: ReadonlyArray<number>) => der(0x02, Buffer.from(bytes))
const utcTime = (text: string) => der(0x17, Buffer.from(text))
const isTrue = der(0x01, Buffer.from([0xff]))
const commonName = (name: string) =>
  sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))))
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"))

const basicConstraints = sequence(oid("551d13"), isTrue, der(0x04, sequence(isTrue)))
const subjectAltName = (...names: ReadonlyArray<Uint8Array>) =>
  sequence(oid("551d11"), der(0x04, sequence(...names)))

const certify = (
  name: string,
  extensions: ReadonlyArray<Uint8Array>,
  { isExpired, issuer }: SigningOptions = {}
): Identity => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const key = String(privateKey.export({ type: "pkcs8", format: "pem" }))
  const content = sequence(
    der(0xa0, integer(2)),
    // The first byte makes the serial number positive.
    integer(0x40, ...randomBytes(8)),
    ecdsaWithSha256,
    commonName(issuer?.name ?? name),
    // Fixed times need no clock. UTCTime cannot express years after 2049.
    sequence(utcTime("000101000000Z"), utcTime(isExpired ? "010101000000Z" : "491231235959Z")),
    commonName(name),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions))
  )
  const signature = der(0x03, Buffer.from([0]), sign("sha256", content, issuer?.key ?? key))
  return {
    name,
    key,
    cert: new X509Certificate(sequence(content, ecdsaWithSha256, signature)).toString()
  }
}

export const makeAuthority = () =>
  certify("Store API emulator, made for this run", [basicConstraints])

export const makeLeaf = (
  dnsName: string,
  addresses: ReadonlyArray<Uint8Array>,
  options?: SigningOptions
) => {
  const names = [der(0x82, Buffer.from(dnsName)), ...addresses.map((ip) => der(0x87, ip))]
  return certify(dnsName, [subjectAltName(...names)], options)
}
