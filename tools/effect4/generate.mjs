/** Generates the packages for Effect 4 from those for Effect 3, and compiles them. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { createFromBuffer } from "@dprint/formatter"
import configs from "../../eslint.config.mjs"
import { binaryOf } from "../runtimes/binaries.mjs"
import { pageOf, withoutEffect4 } from "../support/pairs.mjs"
import { releaseFields } from "../workspace/published.mjs"
import { build, install, root, tool } from "../workspace/workspace.mjs"
import * as rules from "./rules.mjs"
import { applied, transform, transformPage } from "./transform.mjs"
import { effect4, effect4Version } from "./versions.mjs"

export const workspace = fileURLToPath(new URL("./workspace", import.meta.url))

const overlay = fileURLToPath(new URL("./overlay", import.meta.url))

export const packages = ["core", "platform-node", "redis", "sql", "dpop", "emulator"]

/** Unpublished folders: where each is, and its configuration. */
const unpublished = {
  testing: ["packages", "package.json"],
  interop: ["tools", "vitest.config.ts"]
}

/** The emulator serves the tests of the others. Its own run on Effect 3. */
const partsOf = (name) => name === "emulator" ? ["src"] : ["src", "test"]

const read = (path) => readFileSync(path, "utf8")

const filesIn = (folder) =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => relative(folder, join(parentPath, name)))
      .sort()
    : []

const filesUnder = (folder) => filesIn(join(root, folder)).map((file) => join(folder, file))

/** The modules of the installed Effect 4, by their names. */
const installedModules = () => {
  const found = new Map([["FastCheck", { specifier: "fast-check" }]])
  const list = (name, folder) => {
    const dist = join(workspace, "node_modules", name, "dist", folder)
    const barrel = read(join(dist, "index.d.ts"))
    for (const file of readdirSync(dist)) {
      const module = /^([A-Z]\w*)\.d\.ts$/.exec(file)?.[1]
      if (module === undefined || found.has(module)) continue
      const path = [name, folder].filter(Boolean).join("/")
      // Some modules have to be imported from their own path.
      const inBarrel = barrel.includes(` as ${module} from`)
      found.set(module, {
        specifier: `${path}/${module}`,
        barrel: inBarrel ? path : undefined
      })
    }
  }
  for (
    const folder of [
      "",
      "testing",
      "http",
      "encoding",
      "http-api",
      "observability",
      "sql",
      "reactivity"
    ]
  ) {
    list("effect", folder)
  }
  for (const name of ["@effect/platform-node", "@effect/opentelemetry", "@effect/sql-pg"]) {
    list(name, "")
  }
  return found
}

let modules
const contextOf = (problem, isLibrary = false) => ({
  isLibrary,
  moduleOf: (name) => (modules ??= installedModules()).get(name),
  problem
})

/** Whether two sources have the same lines. The order of their imports may differ. */
const isSame = (...sources) =>
  new Set(sources.map((text) => text.trim().split("\n").sort().join("\n"))).size === 1

/** A block of the docs in Effect 4, formatted as ESLint formats ours, or the block itself if it is for both majors. */
export const blockOf = (own, report = () => undefined) => {
  const code = formatted(transform(own, contextOf(report), true))
  return isSame(code, formatted(own)) ? own : code
}

/** The TypeScript blocks of a page or of doc comments in Effect 4, each with the line on which its code starts. */
export const blocksOf = (text, report = () => undefined) =>
  [...text.matchAll(/^( *(?:\* )?)```ts\n([\s\S]*?)^\1```$/gm)].map(
    ({ 1: margin, 2: code, index }) => {
      const line = text.slice(0, index).split("\n").length + 1
      const own = code.split("\n").map((row) => row.slice(margin.length)).join("\n")
      return { line, code: blockOf(own, (row, problem) => report(line + row - 1, problem)) }
    }
  )

/** Imports of packages that are not installed here: the compiler might find them at the root of the repository. */
const strangers = (text, source, installed) =>
  [...text.matchAll(
    /^(?:import|export|\}) (?:[^"\n]* )?(from "((?:@[\w-]+\/)?[\w-]+)(?:\/[^"]*)?")$/gm
  )]
    .filter(([, , name]) => !installed.has(name))
    .map(([, from, name]) => [lineOf(source, from), `"${name}" is not installed for Effect 4`])

const lineOf = (text, part) => text.split("\n").findIndex((row) => row.includes(part)) + 1

/** Rules that match nothing in the sources. */
const unused = () =>
  [
    ...["modules", "members", "patterns", "properties", "omitted", "allowed"].flatMap((kind) =>
      Object.keys(rules[kind])
    ),
    ...rules.texts.map(([from]) => from)
  ].filter((rule) => !applied.has(rule)).map((rule) =>
    `tools/effect4/rules.mjs: nothing in the sources is "${rule}"`
  )

const eslintPlugin = createRequire(
  createRequire(import.meta.url).resolve("@effect/eslint-plugin")
)
const dprint = createFromBuffer(readFileSync(eslintPlugin("@dprint/typescript").getPath()))
const [{ config }] = configs.flatMap(({ rules }) => rules?.["@effect/dprint"]?.slice(1) ?? [])
dprint.setConfig({}, config)

const formatted = (fileText, overrideConfig = {}) =>
  dprint.formatText({ filePath: "generated.ts", fileText, overrideConfig })

/** Formats a source, and the code in its doc comments, as ESLint formats ours. */
const format = (text) =>
  formatted(text.replace(/^ \* ```ts\n([\s\S]*?)^ \* ```$/gm, (_, block) => {
    const code = formatted(block.replaceAll(/^ \* ?/gm, ""), {
      lineWidth: config.lineWidth - " * ".length
    })
    return [
      " * ```ts",
      ...code.trimEnd().split("\n").map((row) => ` * ${row}`.trimEnd()),
      " * ```"
    ].join("\n")
  }))

/** The manifest of a package: the same name, an even major, and peers of Effect 4. */
export const manifestOf = (folder, repository) => {
  const { devDependencies: _, ...manifest } = JSON.parse(
    read(join(root, "packages", folder, "package.json"))
  )
  const version = effect4Version(manifest.version)
  const ranges = (dependencies) =>
    Object.fromEntries(
      Object.keys(dependencies).filter((name) =>
        !["@effect/platform", "@effect/sql"].includes(name)
      ).map((name) => [
        name,
        name.startsWith("@store-api/") ? `^${version}` : effect4.ranges[name]
      ])
    )
  const { dependencies, peerDependencies, peerDependenciesMeta: optional } = manifest
  const peers = ranges(peerDependencies)
  const fields = {
    ...manifest,
    version,
    engines: { node: effect4.node },
    ...dependencies === undefined ? {} : { dependencies: ranges(dependencies) },
    peerDependencies: peers,
    ...optional &&
      {
        peerDependenciesMeta: Object.fromEntries(
          Object.keys(peers).map((name) => [name, optional[name]])
        )
      },
    ...repository === undefined ? {} : releaseFields(manifest.name, repository)
  }
  return `${JSON.stringify(fields, null, 2)}\n`
}

/** Checks the types of tests and examples. */
const checkedProject = {
  extends: "../../../../tsconfig.base.json",
  include: ["examples", "*/test", "interop/src", "../examples"],
  references: packages.map((name) => ({ path: `${name}/tsconfig.src.json` })),
  compilerOptions: {
    noEmit: true,
    composite: false,
    declaration: false,
    declarationMap: false,
    allowImportingTsExtensions: true,
    noUnusedLocals: false,
    types: ["node"],
    tsBuildInfoFile: "core/.tsbuild/checked.tsbuildinfo"
  }
}

/** Writes what has changed. In these folders, removes what is no longer generated, except output of the compiler. */
const write = (base, written, ...folders) => {
  for (const [path, text] of written) {
    const to = join(base, path)
    if (existsSync(to) && read(to) === text) continue
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, text)
  }
  for (
    const path of folders.flatMap((folder) =>
      filesIn(join(base, folder)).map((file) => join(folder, file))
    )
  ) {
    const isOutput = /^packages[\\/][\w-]+[\\/](dist|\.tsbuild|node_modules)[\\/]/.test(path)
    if (!isOutput && !written.has(path)) rmSync(join(base, path))
  }
}

/** The committed examples and pages that are not those generated. */
const stale = (generated) =>
  [...new Set([...generated.keys(), ...filesUnder(join("examples", "effect4"))])]
    .filter((path) =>
      !existsSync(join(root, path)) || read(join(root, path)) !== generated.get(path)
    )
    .map((path) => `${path}: not what is generated. Run npm run effect4, and commit it.`)

/** Generates all packages. In a release they name the repository. Returns the problems. */
const generate = (repository) => {
  const installed = new Set([
    "@effect/vitest",
    ...Object.keys(JSON.parse(read(join(workspace, "package.json"))).devDependencies)
  ])
  const problems = []
  const written = new Map()
  for (const name of [...packages, ...Object.keys(unpublished)]) {
    const isPackage = packages.includes(name)
    const [parent, config] = unpublished[name] ?? ["packages", "tsconfig.src.json"]
    const base = join(root, parent, name)
    const overlaid = filesIn(join(overlay, name))
    const sources = [...partsOf(name), "bin"].flatMap((part) =>
      filesIn(join(base, part)).map((file) => join(part, file))
    )
    for (const file of new Set([...sources, ...overlaid])) {
      const isOverlay = overlaid.includes(file)
      const isPublished = isPackage && file.startsWith("src")
      const path = join(isOverlay ? join(overlay, name) : base, file)
      const report = (row, problem) =>
        problems.push(`${relative(root, path)}:${row}: ${problem}`)
      const text = read(path)
      if (!/\.m?[jt]s$/.test(file) || file.startsWith("bin")) {
        written.set(join("packages", name, file), text)
        continue
      }
      const overlaying = isOverlay ? `${name}/${file.replaceAll("\\", "/")}` : undefined
      const transformed = transform(text, {
        ...contextOf(report, isPublished),
        overlay: overlaying
      })
      for (const [row, problem] of strangers(transformed, text, installed)) {
        report(row, problem)
      }
      written.set(
        join("packages", name, file),
        isPublished ? format(transformed) : transformed
      )
    }
    const configured = read(join(base, config)).replace(
      "../../tsconfig",
      "../../../../../tsconfig"
    )
    written.set(join("packages", name, config), configured)
    if (!isPackage) continue
    // The problems of its blocks are reported below.
    const page = transformPage(read(join(base, "README.md")), contextOf(() => undefined))
    written.set(join("packages", name, "README.md"), page)
    written.set(join("packages", name, "LICENSE"), read(join(root, "LICENSE")))
    written.set(join("packages", name, "package.json"), manifestOf(name, repository))
  }
  const documented = packages.flatMap((
    name
  ) => [`packages/${name}/README.md`, ...filesUnder(`packages/${name}/src`)])
  /** The pages with the code for Effect 4. They are committed, for readers. */
  const pages = new Map()
  for (const file of ["README.md", ...filesUnder("docs"), ...documented]) {
    if (file.startsWith(join("docs", "reference", "api"))) continue
    const report = (row, problem) => problems.push(`${file}:${row}: ${problem}`)
    const text = read(join(root, file))
    if (file.endsWith(".md")) pages.set(file, pageOf(text, blockOf))
    for (const { code, line } of blocksOf(withoutEffect4(text), report)) {
      written.set(
        join("packages", "examples", `${file.replaceAll(/\W/g, "-")}-${line}.ts`),
        code
      )
      // The files of the tutorial import each other. Of several versions, the last is imported.
      const [, saved] = /^\/\/ (\w+\.ts)$/m.exec(code) ?? []
      if (saved !== undefined) written.set(join("packages", "examples", saved), code)
    }
  }
  /** The examples that differ. They are committed, for readers. */
  const examples = new Map()
  const shown = ["renewal", "shop"].map((name) => join("examples", "test", `${name}.test.ts`))
  for (
    const path of [...filesUnder(join("examples", "src")), ...shown].filter((path) =>
      !/\bdemo\b/.test(path)
    )
  ) {
    const text = read(join(root, path))
    const report = (row, problem) => problems.push(`${path}:${row}: ${problem}`)
    const code = format(transform(text, contextOf(report)))
    written.set(path, code)
    const copy = path.replace("src", "effect4")
    if (!isSame(code, text) && copy !== path && !/declared.server/.test(path)) {
      examples.set(copy, code)
    }
  }
  // The benchmarks run this measurement on Effect 4 too.
  for (const file of ["harness.ts", "hit.ts"]) {
    const path = join("tools", "benchmarks", "src", file)
    const report = (row, problem) => problems.push(`${path}:${row}: ${problem}`)
    written.set(
      join("packages", "examples", file),
      transform(read(join(root, path)), contextOf(report))
    )
  }
  written.set(join("packages", "tsconfig.json"), JSON.stringify(checkedProject))
  // Vitest 5 has no options of single pools.
  const config = read(join(root, "vitest.config.ts")).replace(
    /poolOptions: \{ forks: \{ (execArgv: .*\]) \} \}/,
    "$1"
  )
  written.set("vitest.config.ts", config)
  // A test reads the guide.
  written.set(
    join("docs", "guides", "several-instances.md"),
    read(join(root, "docs/guides/several-instances.md"))
  )
  problems.push(...unused())
  if (process.env.CI === "true") problems.push(...stale(new Map([...examples, ...pages])))
  if (problems.length === 0) {
    write(workspace, written, "packages", "examples")
    write(root, examples, join("examples", "effect4"))
    write(root, pages)
  }
  return [...new Set(problems)]
}

/** The path of a Node on which Effect 4's tests run: this one, or else one from npm. */
export const nodeOf = () => {
  const [major, minor] = process.versions.node.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19) ? process.execPath : binaryOf("node24")
}

/**
 * Exits with code 1 if a source cannot be generated or compiled. `checked` also checks the types of tests and examples.
 *
 * @param {{ checked?: boolean, repository?: string }} options
 */
export const buildEffect4 = ({ checked = false, repository }) => {
  install("tools/effect4/workspace")
  const problems = generate(repository)
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  if (problems.length > 0) process.exit(1)
  const sources = packages.map((name) =>
    join(workspace, "packages", name, "tsconfig.src.json")
  )
  tool("tsc", ["-b", ...sources, ...checked ? [join(workspace, "packages")] : []])
  // Its command is the same for both majors.
  build()
  const [from, to] = [root, workspace].map((folder) =>
    join(folder, "packages/emulator/dist/store-api-emulator")
  )
  for (const end of [".mjs", ".third-party.txt"]) copyFileSync(`${from}${end}`, `${to}${end}`)
}
