/** Rules for each published package that publint and attw do not check. */
import { posix } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { effect4Version } from "../effect4/versions.mjs"
import { catalog, folders, readJson, releaseFields } from "../workspace/published.mjs"

const { engines, license } = readJson("package.json")

/** The Node and the ranges that the manifests for Effect 3 must have. */
export const effect3 = { node: engines.node, ranges: catalog }

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

const fields = (manifest, _, versions, repository) => {
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
    engines: { node: versions.node },
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
const dependencies = (manifest, _, versions) => {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, version } =
    manifest
  const own = { ...dependencies, ...optionalDependencies }
  const rangeOf = (name) => folders.has(name) ? `^${version}` : versions.ranges[name]
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
export const problemsOf = (files, repository, versions = effect3) => {
  const manifest = JSON.parse(files.get("package.json"))
  return [fields, contents, dependencies].flatMap((rule) =>
    rule(manifest, files, versions, repository)
  )
}

/** @param {ReadonlyArray<string>} versions */
export const versionProblems = (versions) =>
  new Set(versions).size === 1
    ? []
    : [`the versions of the packages are not one: ${versions.join(", ")}`]

/** Makes an even major odd: in the version of a manifest, and in the headings and lists of a changelog. */
export const withOddMajor = (text) =>
  text.replaceAll(
    /("version": "|## |@store-api\/[\w-]+@)([1-9]\d*)(?=\.\d+\.\d+["\s])/g,
    (_, before, major) => before + (Number(major) + 1 - Number(major) % 2)
  )

/** Returns whether these two versions break their rule: an odd major, and the even one that follows it. */
export const majorProblems = (effect3, effect4) =>
  Number.parseInt(effect3) % 2 === 1 && effect4 === effect4Version(effect3)
    ? []
    : [
      `the versions for Effect 3 and Effect 4 are ${effect3} and ${effect4}, not an odd major and the even one that follows it`
    ]

/**
 * Returns the packages for both majors of Effect in the order of publication, each with its dist-tag. `latest` is
 * Effect 4, as the `latest` of `effect` is, or Effect 3 for a package that only Effect 3 has, such as the command line.
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
