/** Certificates of an authority that lives as long as the process: just enough of X.509 (RFC 5280) and DER for a test. */
import { Buffer } from "node:buffer"
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

export interface Identity {
  /** PEM, its issuer's behind it where it has another. */
  readonly cert: string
  readonly key: string
}

export interface Authority extends Identity {
  readonly name: string
  readonly privateKey: KeyObject
}

export interface Leaf {
  readonly dnsNames: ReadonlyArray<string>
  readonly addresses: ReadonlyArray<Uint8Array>
  /** Whether its time is over. */
  readonly expired: boolean
  /** Who signs it; itself without one. */
  readonly issuer: Authority | undefined
}

const der = (tag: number, ...contents: ReadonlyArray<Uint8Array>) => {
  const content = Buffer.concat(contents)
  const { length } = content
  const head = length < 0x80
    ? [tag, length]
    : length < 0x100
    ? [tag, 0x81, length]
    : [tag, 0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from(head), content])
}

const sequence = (...contents: ReadonlyArray<Uint8Array>) => der(0x30, ...contents)
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"))
const bits = (content: Uint8Array) => der(0x03, Buffer.from([0]), content)
const isTrue = der(0x01, Buffer.from([0xff]))
const named = (name: string) => sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))))
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"))

/** A positive number of eight bytes. */
const serial = () => {
  const bytes = randomBytes(8)
  bytes.writeUInt8((bytes.readUInt8() & 0x3f) | 0x40)
  return der(0x02, bytes)
}

/** Fixed times, so that no clock is asked; UTCTime ends with 2049. */
const validity = (expired: boolean) =>
  sequence(
    ...["000101000000Z", expired ? "010101000000Z" : "491231235959Z"].map((time) => der(0x17, Buffer.from(time)))
  )

const extension = (id: string, value: Uint8Array, ...critical: ReadonlyArray<Uint8Array>) =>
  sequence(oid(id), ...critical, der(0x04, value))

const basicConstraints = (isAuthority: boolean) =>
  extension("551d13", sequence(...(isAuthority ? [isTrue] : [])), isTrue)

const alternativeNames = ({ addresses, dnsNames }: Leaf) =>
  extension(
    "551d11",
    sequence(
      ...dnsNames.map((name) => der(0x82, Buffer.from(name))),
      ...addresses.map((address) => der(0x87, address))
    )
  )

const pem = (certificate: Uint8Array) =>
  [
    "-----BEGIN CERTIFICATE-----",
    ...(Buffer.from(certificate).toString("base64").match(/.{1,64}/g) ?? []),
    "-----END CERTIFICATE-----",
    ""
  ].join("\n")

const keyPair = () => generateKeyPairSync("ec", { namedCurve: "P-256" })

const signed = (parts: {
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: { readonly name: string; readonly privateKey: KeyObject }
  readonly expired: boolean
  readonly extensions: ReadonlyArray<Uint8Array>
}) => {
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    serial(),
    ecdsaWithSha256,
    named(parts.issuer.name),
    validity(parts.expired),
    named(parts.subject),
    parts.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...parts.extensions))
  )
  return pem(sequence(content, ecdsaWithSha256, bits(sign("sha256", content, parts.issuer.privateKey))))
}

const exported = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString()

export const authority = (): Authority => {
  const { privateKey, publicKey } = keyPair()
  const name = "Store API emulator, made for this run"
  return {
    name,
    privateKey,
    key: exported(privateKey),
    cert: signed({
      subject: name,
      publicKey,
      issuer: { name, privateKey },
      expired: false,
      extensions: [basicConstraints(true)]
    })
  }
}

export const leaf = (options: Leaf): Identity => {
  const { privateKey, publicKey } = keyPair()
  const subject = options.dnsNames[0] ?? ""
  return {
    key: exported(privateKey),
    cert: signed({
      subject,
      publicKey,
      issuer: options.issuer ?? { name: subject, privateKey },
      expired: options.expired,
      extensions: [basicConstraints(false), alternativeNames(options)]
    })
  }
}
