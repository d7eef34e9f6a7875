/** Rules for each published package that publint and attw do not check. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { parse } from "yaml"
import { root } from "../workspace/workspace.mjs"

const read = (path) => readFileSync(join(root, path), "utf8")

const { engines, license } = JSON.parse(read("package.json"))

/**
 * The ranges of the dependencies, one per name for all packages.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const catalog = parse(read("pnpm-workspace.yaml")).catalog

/** The Node and the ranges that the manifests of the Effect 3 line must have. */
export const effect3 = { node: engines.node, ranges: catalog }

const installed4 = JSON.parse(read("tools/effect4/line/package.json")).devDependencies

/** The same for the Effect 4 line. */
export const effect4 = {
  node: ">=22.19",
  ranges: {
    ...catalog,
    ...Object.fromEntries(
      ["effect", "@effect/platform-node"].map((name) => [name, installed4[name]])
    )
  }
}

/**
 * The folder below `packages` of each published package, by its name.
 *
 * @type {ReadonlyMap<string, string>}
 */
export const folders = new Map(
  readdirSync(join(root, "packages"))
    .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
    .map((folder) => [folder, JSON.parse(read(`packages/${folder}/package.json`))])
    .filter(([, manifest]) => manifest.private !== true)
    .map(([folder, { name }]) => [name, folder])
)

/** The fields of a package that is released from a repository on GitHub. Provenance is checked against `repository`. */
export const releaseFields = (name, repository) => {
  if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) {
    throw new Error(`Expected owner/name instead of ${repository}`)
  }
  const url = `https://github.com/${repository}`
  return {
    repository: {
      type: "git",
      url: `git+${url}.git`,
      directory: `packages/${folders.get(name)}`
    },
    homepage: `${url}#readme`,
    bugs: `${url}/issues`
  }
}

/** An application has a command, and cannot be imported. */
const isApplication = ({ bin, exports = {} }) =>
  bin !== undefined && exports["."] === undefined

/** The modules that users can import. */
export const publicModules = (files) => {
  const manifest = JSON.parse(files.get("package.json"))
  return isApplication(manifest) ? [] : [...files.keys()]
    .flatMap((path) => /^dist\/([^/]+)\.js$/.exec(path)?.[1] ?? [])
    .filter((name) => manifest.exports[`./${name}`] !== null)
}

const fields = (manifest, _, line, repository) => {
  const { bin, name } = manifest
  const entry = (module) => ({
    types: `./dist/${module}.d.ts`,
    default: `./dist/${module}.js`
  })
  const library = {
    ".": entry("index"),
    "./*": entry("*"),
    "./internal/*": null
  }
  const expected = {
    license,
    engines: { node: line.node },
    publishConfig: { access: "public", provenance: true },
    scripts: undefined,
    sideEffects: isApplication(manifest) ? undefined : bin === undefined ? [] : ["./bin/*"],
    exports: { "./package.json": "./package.json", ...isApplication(manifest) ? {} : library },
    ...repository === undefined ? { repository: undefined } : releaseFields(name, repository)
  }
  return Object.entries(expected)
    .filter(([field, value]) => !isDeepStrictEqual(manifest[field], value))
    .map(([field, value]) =>
      `${field} is ${JSON.stringify(manifest[field])}, not ${JSON.stringify(value)}`
    )
}

/** No output of a deleted source, no test and no state of a tool. */
const contents = ({ bin = {} }, files) => {
  const bundles = Object.keys(bin).flatMap((
    name
  ) => [`dist/${name}.mjs`, `dist/${name}.third-party.txt`])
  const named = [
    "package.json",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    ...Object.values(bin).map(posix.normalize)
  ]
    .concat(bundles, "src/page.html")
  const sourceOf = (path) => path.replace(/^dist\/(.*?)(\.js|\.d\.ts)(\.map)?$/, "src/$1.ts")
  const hasSource = (path) => /^src\/.*\.ts$/.test(sourceOf(path)) && files.has(sourceOf(path))
  return [
    ...["LICENSE", "README.md", ...bundles].filter((path) => !files.has(path)).map((path) =>
      `${path} is missing`
    ),
    ...[...files.keys()].filter((path) => !named.includes(path) && !hasSource(path))
      .map((path) => `${path} should not be in it`)
  ]
}

/**
 * Two copies of Effect would give each tag two identities, so libraries have it as a peer. Core has only peers.
 */
const mustBePeer = (manifest, dependency) =>
  manifest.name === "@store-api/core" ||
  (!isApplication(manifest) && /^(effect$|@effect\/)/.test(dependency))

/** The consumer finds a package that is imported but not declared: pnpm installs only what is declared. */
const dependencies = (manifest, _, line) => {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, version } =
    manifest
  const own = { ...dependencies, ...optionalDependencies }
  const rangeOf = (name) => folders.has(name) ? `^${version}` : line.ranges[name]
  return [
    ...Object.keys(own).filter((name) => mustBePeer(manifest, name)).map((name) =>
      `${name} must be a peer`
    ),
    ...Object.entries({ ...own, ...peerDependencies }).filter(([name, range]) =>
      range !== rangeOf(name)
    )
      .map(([name, range]) => `the range of ${name} is ${range}, not ${rangeOf(name)}`)
  ]
}

/**
 * Returns the problems of a package, given as the texts of its files by path.
 *
 * @param {ReadonlyMap<string, string>} files
 * @param {string} [repository] `owner/name`, in a release
 * @returns {ReadonlyArray<string>}
 */
export const problemsOf = (files, repository, line = effect3) => {
  const manifest = JSON.parse(files.get("package.json"))
  return [fields, contents, dependencies].flatMap((rule) =>
    rule(manifest, files, line, repository)
  )
}

/** @param {ReadonlyArray<string>} versions */
export const versionProblems = (versions) =>
  new Set(versions).size === 1
    ? []
    : [`the versions of the packages are not one: ${versions.join(", ")}`]

/** The version of the Effect 4 line: the next major, with the same minor and patch. 0.0.0 counts as 1.0.0. */
export const effect4Version = (effect3) =>
  effect3.replace(/^\d+/, (major) => String(Math.max(Number(major), 1) + 1))

/** Makes an even major odd: in the version of a manifest, and in the headings and lists of a changelog. */
export const withOddMajor = (text) =>
  text.replaceAll(
    /("version": "|## |@store-api\/[\w-]+@)([1-9]\d*)(?=\.\d+\.\d+["\s])/g,
    (_, before, major) => before + (Number(major) + 1 - Number(major) % 2)
  )

/** Returns whether the two lines break the rule for their versions: an odd major, and the even one that follows it. */
export const lineProblems = (effect3, effect4) =>
  Number.parseInt(effect3) % 2 === 1 && effect4 === effect4Version(effect3)
    ? []
    : [
      `the versions of the lines are ${effect3} and ${effect4}, not an odd major and the even one that follows it`
    ]

/**
 * Returns the packages of both lines in the order of publication, each with its dist-tag. `latest` is Effect 4, as the
 * `latest` of `effect` is, or Effect 3 for a package that only that line has, such as the command line.
 *
 * @template {{ readonly name: string }} P
 * @param {ReadonlyArray<P>} effect3
 * @param {ReadonlyArray<P>} effect4
 */
export const publications = (effect3, effect4) => {
  const names = effect4.map(({ name }) => name)
  return [
    ...effect3.map((one) => ({
      ...one,
      tag: names.includes(one.name) ? "effect3" : "latest"
    })),
    ...effect4.map((one) => ({ ...one, tag: "latest" }))
  ]
}
