/**
 * Type-checks code blocks of the documentation. It runs as a process of its own, because it keeps a processor busy for
 * up to a minute, and a test that does not answer for so long is reported as lost. It reads the blocks as JSON from
 * standard input, and prints their problems as JSON.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Resolves the packages to their sources, without a build. `internal` cannot be imported. */
const compilerOptions = () => {
  const folder = join(root, "tools")
  const { config } = ts.readConfigFile(
    join(folder, "tsconfig.sources.json"),
    (path) => ts.sys.readFile(path)
  )
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, files: [], include: [] },
    ts.sys,
    folder
  )
  const modules = Object.keys(options.paths ?? {}).filter((path) => path.endsWith("/*"))
  const closed = Object.fromEntries(
    modules.map((path) => [path.replace("*", "internal/*"), ["closed"]])
  )
  return {
    ...options,
    noUnusedLocals: false,
    allowImportingTsExtensions: true,
    paths: { ...options.paths, ...closed }
  }
}

/**
 * The problems of the blocks, as modules in the folder of the examples.
 * @param {ReadonlyArray<{ file: string, line: number, code: string }>} blocks
 */
const problemsOf = (blocks) => {
  const inExamples = (/** @type {string} */ name) =>
    join(root, "examples", "src", name).replaceAll("\\", "/")
  const modules = new Map(
    blocks.map((block, index) => [inExamples(`block-${index}.ts`), block])
  )
  // The files of the tutorial import each other. The last version of each is used.
  const saved = new Map(
    blocks.flatMap((block) => {
      const [, name] = /^\/\/ (\w+\.ts)$/m.exec(block.code) ?? []
      return name === undefined ? [] : [/** @type {const} */ ([inExamples(name), block])]
    })
  )
  const options = compilerOptions()
  const host = ts.createCompilerHost(options)
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone
  const ofDisk = { fileExists: host.fileExists.bind(host), readFile: host.readFile.bind(host) }
  const virtual = (/** @type {string} */ path) => modules.get(path) ?? saved.get(path)
  host.fileExists = (path) => virtual(path) !== undefined || ofDisk.fileExists(path)
  host.readFile = (path) => virtual(path)?.code ?? ofDisk.readFile(path)
  const program = ts.createProgram([...modules.keys()], options, host)
  return [...modules].flatMap(([path, block]) => {
    const file = program.getSourceFile(path)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
      .map((problem) => {
        const line = file?.getLineAndCharacterOfPosition(problem.start ?? 0).line ?? 0
        return `${block.file}:${block.line + line}: ${
          ts.flattenDiagnosticMessageText(problem.messageText, " ")
        }`
      })
  })
}

process.stdout.write(JSON.stringify(problemsOf(JSON.parse(readFileSync(0, "utf8")))))
