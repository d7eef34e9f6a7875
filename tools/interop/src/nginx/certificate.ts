/** Certificates that `openssl` creates for each test: an authority, and a server certificate that it signs. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import * as Program from "../debian/Program.js"

export const program = Program.find({
  command: "/usr/bin/openssl",
  parameters: ["version"],
  pattern: /OpenSSL ([\d.]+)/,
  debianPackage: "openssl"
})

export interface Identity {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

/** For a server on loopback. */
export const make: Effect.Effect<Identity, never, Scope.Scope> = Effect.map(Program.folder, (folder) => {
  const path = (name: string) => join(folder, name)
  const openssl = (parameters: ReadonlyArray<string>) => execFileSync(program.command, parameters, { stdio: "pipe" })
  const subject = (name: string) => ["-subj", `/CN=${name}`]
  const caFiles = { cert: path("ca.pem"), key: path("ca.key") }
  openssl(["req", "-x509", ...newKey, "-days", "2", ...subject("An invented authority")].concat(
    ["-keyout", caFiles.key, "-out", caFiles.cert]
  ))
  openssl(["req", ...newKey, ...subject("127.0.0.1"), "-keyout", path("key.pem"), "-out", path("request.pem")])
  writeFileSync(path("extensions"), "subjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n")
  openssl(["x509", "-req", "-in", path("request.pem"), "-days", "2", "-extfile", path("extensions")].concat(
    ["-CA", caFiles.cert, "-CAkey", caFiles.key, "-CAcreateserial", "-out", path("cert.pem")]
  ))
  const read = (name: string) => readFileSync(path(name), "utf8")
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") }
})
