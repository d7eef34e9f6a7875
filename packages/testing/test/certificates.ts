import { execFileSync, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { isIP } from "node:net"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type Identity, newFolder } from "./loopback.js"

/**
 * Debian's `openssl` creates the certificates. Without it, tests that need them are skipped, except with `CI=true`.
 */
export const canMakeCertificates = spawnSync("openssl", ["version"]).status === 0 ||
  process.env["CI"] === "true"

if (!canMakeCertificates) {
  console.warn("There is no command openssl: tests that need certificates are skipped.")
}

const made = new Map<string, Identity>()

/**
 * A self-signed identity for a name or address. The same parameters return the same one; `which` separates those of one
 * name.
 */
export const selfSigned = (name = "localhost", which = 1): Effect.Effect<Identity> =>
  Effect.sync(() => {
    const found = made.get(`${name} ${which}`)
    if (found !== undefined) return found
    const text = execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2"
      ].concat(
        ["-keyout", "-", "-out", "-", "-subj", `/CN=${name}`],
        ["-addext", `subjectAltName=${isIP(name) === 0 ? "DNS" : "IP"}:${name}`]
      ),
      { stdio: "pipe", encoding: "utf8" }
    )
    const [key = "", cert = ""] = ["PRIVATE KEY", "CERTIFICATE"].map((kind) =>
      new RegExp(`-----BEGIN ${kind}-----[^]+-----END ${kind}-----\n`).exec(text)?.[0]
    )
    made.set(`${name} ${which}`, { key, cert })
    return { key, cert }
  })

/** The paths of files that hold the identity until the scope ends. */
export const filesOf = (
  { cert, key }: Identity
): Effect.Effect<Identity, never, Scope.Scope> =>
  Effect.map(newFolder("certificate"), (folder) => {
    const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") }
    writeFileSync(files.cert, cert)
    writeFileSync(files.key, key)
    return files
  })
