/** Generates the packages of the Effect 4 line from those of the Effect 3 line. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { root } from "../workspace/workspace.mjs"
import { format } from "./format.mjs"
import { manifestOf } from "./manifest.mjs"
import * as rules from "./rules.mjs"
import { applied, transform, transformPage } from "./transform.mjs"

export const line = fileURLToPath(new URL("./line", import.meta.url))

const overlay = fileURLToPath(new URL("./overlay", import.meta.url))

export const packages = ["core", "platform-node", "redis", "emulator"]

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
    const dist = join(line, "node_modules", name, "dist", folder)
    const barrel = read(join(dist, "index.d.ts"))
    for (const file of readdirSync(dist)) {
      const module = /^([A-Z]\w*)\.d\.ts$/.exec(file)?.[1]
      if (module === undefined || found.has(module)) continue
      const path = [name, folder].filter(Boolean).join("/")
      // Some modules have to be imported from their own path.
      const inBarrel = barrel.includes(` as ${module} from`)
      found.set(module, { specifier: `${path}/${module}`, barrel: inBarrel ? path : undefined })
    }
  }
  for (const folder of ["", "testing", "http", "encoding", "http-api", "observability"]) list("effect", folder)
  for (const name of ["@effect/platform-node", "@effect/opentelemetry"]) list(name, "")
  return found
}

let modules
const contextOf = (problem, isLibrary = false) => ({
  isLibrary,
  moduleOf: (name) => (modules ??= installedModules()).get(name),
  problem
})

/** The TypeScript blocks of a page or of doc comments in Effect 4, each with the line on which its code starts. */
export const blocksOf = (text, report = () => undefined) =>
  [...text.matchAll(/^( *(?:\* )?)```ts\n([\s\S]*?)^\1```$/gm)].map(({ 1: margin, 2: code, index }) => {
    const line = text.slice(0, index).split("\n").length + 1
    const own = code.split("\n").map((row) => row.slice(margin.length)).join("\n")
    return { line, code: transform(own, contextOf((row, problem) => report(line + row - 1, problem)), true) }
  })

/** Imports of packages that this line does not install: the compiler might find them at the root of the repository. */
export const strangers = (text, source, installed) =>
  [...text.matchAll(/^(?:import|export|\}) (?:[^"\n]* )?(from "((?:@[\w-]+\/)?[\w-]+)(?:\/[^"]*)?")$/gm)]
    .filter(([, , name]) => !installed.has(name))
    .map(([, from, name]) => [lineOf(source, from), `"${name}" is not installed for Effect 4`])

const lineOf = (text, part) => text.split("\n").findIndex((row) => row.includes(part)) + 1

/** The line of rules.mjs on which a rule stands, and what is wrong with it. */
export const unused = (used = applied) => {
  const rows = read(fileURLToPath(new URL("./rules.mjs", import.meta.url))).split("\n")
  const kinds = ["modules", "members", "patterns", "properties", "omitted", "allowed"]
  const all = kinds.flatMap((kind) => Object.keys(rules[kind]))
  return [...all, ...rules.texts.map(([from]) => from)].filter((rule) => !used.has(rule)).map((rule) => {
    const [module, name] = rule.split(".")
    // A member comes after its module.
    const from = rows.findIndex((row) => rule in rules.members && row.startsWith(`  ${module}: {`))
    const keys = from < 0 ? [`  ${rule}:`, JSON.stringify(rule)] : [` ${name}: "`]
    const at = rows.findIndex((row, index) => index >= from && keys.some((key) => row.includes(key)))
    return `tools/effect4/rules.mjs:${at + 1}: nothing in the sources is "${rule}", so that this rule is dead`
  })
}

/** Checks the types of tests and examples. */
const checkedProject = {
  extends: "../tsconfig.base.json",
  include: ["examples", "*/test"],
  references: [...packages.map((name) => ({ path: `${name}/tsconfig.src.json` })), { path: "interop" }],
  compilerOptions: {
    ...{ noEmit: true, composite: false, declaration: false, declarationMap: false },
    ...{
      allowImportingTsExtensions: true,
      noUnusedLocals: false,
      types: ["node"],
      tsBuildInfoFile: "core/.tsbuild/checked.tsbuildinfo"
    }
  }
}

/** Writes what has changed, removes what is no longer generated, and leaves the output of the compiler alone. */
const write = (written) => {
  for (const [path, text] of written) {
    const to = join(line, path)
    if (existsSync(to) && read(to) === text) continue
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, text)
  }
  for (const path of filesIn(join(line, "packages")).map((file) => join("packages", file))) {
    const isOutput = /^packages[\\/][\w-]+[\\/](dist|\.tsbuild|node_modules)[\\/]/.test(path)
    if (!isOutput && !written.has(path)) rmSync(join(line, path))
  }
}

/** Generates all packages. In a release they name the repository. Returns the problems. */
export const generate = (repository, output = write) => {
  const installed = new Set([
    "@effect/vitest",
    ...Object.keys(JSON.parse(read(join(line, "package.json"))).devDependencies)
  ])
  const problems = []
  const written = new Map()
  for (const name of [...packages, "interop"]) {
    const isPackage = packages.includes(name)
    const base = join(root, isPackage ? "packages" : "tools", name)
    const overlaid = filesIn(join(overlay, name))
    const sources = [...partsOf(name), "bin"].flatMap((part) =>
      filesIn(join(base, part)).map((file) => join(part, file))
    )
    for (const file of new Set([...sources, ...overlaid])) {
      const isOverlay = overlaid.includes(file)
      const isPublished = isPackage && file.startsWith("src")
      const path = join(isOverlay ? join(overlay, name) : base, file)
      const report = (row, problem) => problems.push(`${relative(root, path)}:${row}: ${problem}`)
      const text = read(path)
      if (!/\.m?[jt]s$/.test(file) || file.startsWith("bin")) {
        written.set(join("packages", name, file), text)
        continue
      }
      const overlaying = isOverlay ? `${name}/${file.replaceAll("\\", "/")}` : undefined
      const transformed = transform(text, { ...contextOf(report, isPublished), overlay: overlaying })
      for (const [row, problem] of strangers(transformed, text, installed)) report(row, problem)
      written.set(join("packages", name, file), isPublished ? format(transformed) : transformed)
    }
    for (const file of isPackage ? ["tsconfig.src.json"] : ["tsconfig.json", "vitest.config.ts"]) {
      written.set(join("packages", name, file), read(join(base, file)))
    }
    if (!isPackage) continue
    // The problems of its blocks are reported below.
    const page = transformPage(read(join(base, "README.md")), contextOf(() => undefined))
    written.set(join("packages", name, "README.md"), page)
    written.set(join("packages", name, "LICENSE"), read(join(root, "LICENSE")))
    written.set(join("packages", name, "package.json"), manifestOf(name, repository))
  }
  const documented = packages.flatMap((name) => [`packages/${name}/README.md`, ...filesUnder(`packages/${name}/src`)])
  for (const file of ["README.md", ...filesUnder("docs"), ...documented]) {
    if (file.startsWith(join("docs", "reference", "api"))) continue
    const report = (row, problem) => problems.push(`${file}:${row}: ${problem}`)
    for (const { code, line } of blocksOf(read(join(root, file)), report)) {
      written.set(join("packages", "examples", `${file.replaceAll(/\W/g, "-")}-${line}.ts`), code)
      // The files of the tutorial import each other. Of several versions, the last is imported.
      const [, saved] = /^\/\/ (\w+\.ts)$/m.exec(code) ?? []
      if (saved !== undefined) written.set(join("packages", "examples", saved), code)
    }
  }
  // bench.mjs runs this measurement.
  for (const file of ["harness.ts", "hit.ts"]) {
    const path = join("tools", "benchmarks", "src", file)
    const report = (row, problem) => problems.push(`${path}:${row}: ${problem}`)
    written.set(join("packages", "examples", file), transform(read(join(root, path)), contextOf(report)))
  }
  written.set(join("packages", "tsconfig.json"), JSON.stringify(checkedProject))
  // Vitest 5 has no options of single pools.
  const config = read(join(root, "vitest.config.ts")).replace(/poolOptions: \{ forks: \{ (execArgv: .*\]) \} \}/, "$1")
  written.set("vitest.config.ts", config)
  // A test reads the guide.
  written.set(join("docs", "guides", "redis.md"), read(join(root, "docs/guides/redis.md")))
  problems.push(...unused())
  if (problems.length === 0) output(written)
  return [...new Set(problems)]
}
