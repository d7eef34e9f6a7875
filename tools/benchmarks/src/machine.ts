/** The machine and the versions of a measurement. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { cpus, totalmem } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const packages = [
  "@store-api/core",
  "effect",
  "@effect/platform",
  "@effect/platform-node",
  "@effect/opentelemetry",
  "@opentelemetry/sdk-trace-node",
  "@azure/core-rest-pipeline",
  "@badgateway/oauth2-client",
  "google-auth-library",
  "openid-client",
  "simple-oauth2"
]

const manifestOf = (entry: string, name: string): { readonly version: string } => {
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
        readonly name?: string
        readonly version?: string
      }
      if (manifest.name === name && manifest.version !== undefined) return { version: manifest.version }
    } catch {
      // No manifest in this folder.
    }
  }
  return { version: "unknown" }
}

const require = createRequire(import.meta.url)

export const versionOf = (name: string): string => {
  try {
    return manifestOf(fileURLToPath(import.meta.resolve(name)), name).version
  } catch {
    return manifestOf(require.resolve(name), name).version
  }
}

export const machine = () => {
  const cores = cpus()
  return {
    cpu: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    date: new Date().toISOString().slice(0, 10),
    versions: packages.map((name) => `${name} ${versionOf(name)}`)
  }
}
