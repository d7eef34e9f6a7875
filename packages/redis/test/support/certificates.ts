import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"

/** Debian's `openssl`; without it tests are left out, but never where `CI=true`. */
export const canMakeCertificates = spawnSync("openssl", ["version"]).status === 0 || process.env["CI"] === "true"

/** A self-signed certificate for that host, by default 127.0.0.1, and its key, made anew: their files, gone with the scope. */
export const certificate = (name = "IP:127.0.0.1"): Effect.Effect<
  { readonly cert: string; readonly key: string },
  never,
  Scope.Scope
> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "certificate-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")]
      execFileSync(
        "openssl",
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"].concat(
          ["-keyout", key, "-out", cert, "-subj", "/CN=certificate", "-addext", `subjectAltName=${name}`]
        ),
        { stdio: "pipe" }
      )
      return { key, cert }
    }
  )
