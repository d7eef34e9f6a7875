/** What must be true of each published package, apart from what publint and attw look at. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import ts from "typescript"
import { root } from "../workspace/workspace.mjs"
import { readJson } from "./packages.mjs"

/** What is common to all packages is written once, at the root. */
const { engines, license } = readJson(join(root, "package.json"))
const licenseText = readFileSync(join(root, "LICENSE"), "utf8")

const catalog = new Map(
  (/^catalog:\n((?: {2}.*\n|#.*\n|\n)*)/m.exec(readFileSync(join(root, "pnpm-workspace.yaml"), "utf8"))?.[1] ?? "")
    .split("\n")
    .flatMap((line) => {
      const [, name, range] = /^ {2}"?([^":]+)"?: (\S+)$/.exec(line) ?? []
      return name === undefined ? [] : [[name, range]]
    })
)
if (catalog.size < 10) throw new Error("The catalog of pnpm-workspace.yaml could not be read")

/** An unpacked tarball. */
export const readPackage = (folder) => {
  const files = readdirSync(folder, { recursive: true })
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => path.replaceAll("\\", "/"))
    .sort()
  const read = (path) => readFileSync(join(folder, path), "utf8")
  return { folder, files, read, has: (path) => files.includes(path), manifest: JSON.parse(read("package.json")) }
}

/** A package that one runs and does not import: it has a command, and no door for an `import` of its name. */
const isApplication = ({ bin, exports = {} }) => bin !== undefined && exports["."] === undefined

/** The modules that a user can import: those at the top of `dist`, unless `exports` says no. None of an application. */
export const publicModules = ({ files, manifest }) =>
  isApplication(manifest) ? [] : files
    .flatMap((path) => /^dist\/([^/]+)\.js$/.exec(path)?.[1] ?? [])
    .filter((name) => manifest.exports?.[`./${name}`] !== null)

const same = (what, is, wanted) =>
  JSON.stringify(is) === JSON.stringify(wanted)
    ? []
    : [`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(wanted)}`]

/** Nothing but code, its sources and maps, and what one reads: no tests, no state of a tool. */
const shipped = [
  /^(package\.json|LICENSE|README\.md|CHANGELOG\.md)$/,
  /^bin\/[\w-]+\.js$/,
  /^dist\/(?:[\w-]+\/)*[\w-]+(?:\.d\.ts|\.js)(?:\.map)?$/,
  /^src\/(?:[\w-]+\/)*[\w-]+\.ts$/
]

const files = ({ files }) => [
  ...["package.json", "LICENSE", "README.md"].filter((path) => !files.includes(path)).map((path) =>
    `${path} is missing`
  ),
  ...files
    .filter((path) => !shipped.some((pattern) => pattern.test(path)) || /(^|\/)(test|typetest)\//.test(path))
    .map((path) => `${path} should not be in it`)
]

const texts = ({ has, read }) => [
  ...(has("LICENSE") && read("LICENSE") !== licenseText ? ["LICENSE is not that of the repository"] : []),
  ...(has("README.md") && read("README.md").trim().length < 200 ? ["README.md says nothing"] : [])
]

/** Each source is compiled, each output has its source: nothing is left over from a build long ago. */
const compiled = ({ files, has }) => {
  const sources = files.flatMap((path) => /^src\/(.*)\.ts$/.exec(path)?.[1] ?? [])
  const outputs = files.flatMap((path) => /^dist\/(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(path)?.[1] ?? [])
  const wanted = sources.flatMap((name) => [".js", ".js.map", ".d.ts", ".d.ts.map"].map((end) => `dist/${name}${end}`))
  return [
    ...(sources.length < 2 ? ["there are no sources"] : []),
    ...wanted.filter((path) => !has(path)).map((path) => `${path} is missing`),
    ...[...new Set(outputs)].filter((name) => !sources.includes(name)).map((name) => `dist/${name} has no source`)
  ]
}

/** "Go to definition" arrives in the source, and so does a stack trace. */
const maps = ({ files, has, read }) =>
  files.filter((path) => /^dist\/.*\.(js|d\.ts)$/.test(path)).flatMap((path) => {
    const map = `${path}.map`
    if (!has(map)) return []
    const { sourceRoot = "", sources } = JSON.parse(read(map))
    const lost = sources.filter((source) => !has(posix.join(posix.dirname(map), sourceRoot, source)))
    return [
      ...(sources.length === 0 ? [`${map} names no source`] : []),
      ...lost.map((source) => `${map} points to ${source}, which is not there`),
      ...(read(path).trimEnd().endsWith(`//# sourceMappingURL=${posix.basename(map)}`)
        ? []
        : [`${path} does not name its map`])
    ]
  })

const manifest = ({ manifest }) => [
  ...same("type", manifest.type, "module"),
  ...same("license", manifest.license, license),
  ...same("engines", manifest.engines, { node: engines.node }),
  ...same("publishConfig", manifest.publishConfig, { access: "public", provenance: true }),
  ...(/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(manifest.version) ? [] : [`version is ${manifest.version}`]),
  ...((manifest.description ?? "").length < 20 ? ["description says nothing"] : []),
  // A library that does something when it is installed is one that many may not install.
  ...(manifest.scripts === undefined ? [] : ["there are scripts"])
]

/** A bundler may drop whatever is not used; but not the modules behind a command. */
const sideEffects = ({ manifest }) => {
  const { bin, sideEffects } = manifest
  if (!Array.isArray(sideEffects)) return ["sideEffects is no list"]
  const allowed = bin === undefined ? [] : ["./bin/*", "./dist/bin.js"]
  return sideEffects.filter((path) => !allowed.includes(path)).map((path) => `sideEffects names ${path}`)
}

const exportsShape = ({ has, manifest }) => {
  const { exports = {} } = manifest
  // Whatever else it opened would be a promise that nobody made.
  if (isApplication(manifest)) return same("exports", exports, { "./package.json": "./package.json" })
  const entry = (name) => ({ types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` })
  const closed = Object.entries(exports).filter(([, target]) => target === null).map(([path]) => path)
  const wanted = { "./package.json": "./package.json", ".": entry("index"), "./*": entry("*") }
  return [
    ...same("exports", Object.fromEntries(Object.entries(exports).filter(([, target]) => target !== null)), wanted),
    ...(closed.includes("./internal/*") ? [] : ["exports opens ./internal/*"]),
    ...(has("dist/bin.js") && !closed.includes("./bin") ? ["exports opens ./bin, which runs when it is imported"] : [])
  ]
}

const commands = ({ has, manifest, read }) =>
  Object.entries(manifest.bin ?? {}).flatMap(([name, path]) => {
    const file = posix.normalize(path)
    if (!has(file)) return [`the command ${name} is missing`]
    return read(file).startsWith("#!/usr/bin/env node\n") ? [] : [`the command ${name} does not say that Node runs it`]
  })

const packageOf = (specifier) => specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/")

/** The packages that its code and its declarations import. */
const imported = ({ files, manifest, read }) =>
  new Set(
    files
      .filter((path) => /^(dist|bin)\/.*\.(js|d\.ts)$/.test(path))
      .flatMap((path) => ts.preProcessFile(read(path)).importedFiles.map(({ fileName }) => fileName))
      .filter((specifier) => !/^(\.|node:)/.test(specifier))
      .map(packageOf)
      .filter((name) => name !== manifest.name)
  )

/** Two copies of these would be two identities of the same tag. */
const isShared = (name) => name === "effect" || name.startsWith("@effect/")

/** Core stands on its peers alone. */
const peersOnly = ["@store-api/core"]

/** The folders of this repository that hold a package of that name: one, of a package of ours. */
const foldersOf = (wanted) =>
  readdirSync(join(root, "packages")).filter((name) => {
    const path = join(root, "packages", name, "package.json")
    return existsSync(path) && readJson(path).name === wanted
  })

/**
 * What an application has to bring for its dependencies, and may declare without importing it: their peers. A library
 * leaves them to whoever installs it.
 */
const peersToBring = ({ dependencies = {}, name }) =>
  foldersOf(name).flatMap((folder) =>
    Object.keys(dependencies)
      .map((dependency) => join(root, "packages", folder, "node_modules", dependency, "package.json"))
      .filter((path) => existsSync(path))
      .flatMap((path) => Object.keys(readJson(path).peerDependencies ?? {}))
  )

const dependencies = (tarball) => {
  const { manifest } = tarball
  const { dependencies = {}, name: own, optionalDependencies = {}, peerDependencies = {}, version } = manifest
  const declared = { ...dependencies, ...optionalDependencies, ...peerDependencies }
  const used = imported(tarball)
  const application = isApplication(manifest)
  const needed = new Set([...used, ...(application ? peersToBring(manifest) : [])])
  return [
    ...[...used].filter((name) => !(name in declared)).map((name) => `${name} is imported but not declared`),
    ...Object.keys(declared).filter((name) => !needed.has(name)).map((name) => `${name} is declared but not imported`),
    ...Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => (isShared(name) && !application) || peersOnly.includes(own))
      .map((name) => `${name} must be a peer`),
    ...Object.entries(declared).flatMap(([name, range]) =>
      same(`the range of ${name}`, range, name.startsWith("@store-api/") ? `^${version}` : catalog.get(name))
    )
  ]
}

/** Also where only we look: no range may need this workspace to be understood. */
const protocols = ({ manifest }) =>
  ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"].flatMap((field) =>
    Object.entries(manifest[field] ?? {})
      .filter(([, range]) => !/^[\^~>=<\d]/.test(range))
      .map(([name, range]) => `${field} has ${name} by ${range}`)
  )

/** Provenance names the repository; npm compares it with this field. A wrong one would be worse than none. */
const repository = ({ folder, manifest }, { expected }) => {
  if (expected === undefined) return manifest.repository === undefined ? [] : ["repository is set outside of a release"]
  const folders = foldersOf(manifest.name)
  if (folders.length !== 1) return [`${manifest.name} in ${dirname(folder)} is no package of this repository`]
  return same("repository", manifest.repository, { ...expected, directory: `packages/${folders[0]}` })
}

const rules = [
  files,
  texts,
  compiled,
  maps,
  manifest,
  sideEffects,
  exportsShape,
  commands,
  dependencies,
  protocols,
  repository
]

/** What is wrong with a package; nothing, when all is well. */
export const problemsOf = (tarball, options) => rules.flatMap((rule) => rule(tarball, options))
