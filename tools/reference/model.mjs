/**
 * What the packages offer, read from their sources: each module, each exported name, its declaration and its doc comment.
 * Nothing has to be built for it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import ts from "typescript"
import { root } from "../workspace/workspace.mjs"

const posix = (path) => path.replaceAll("\\", "/")

/** The folders below `packages` that hold a package, in the order in which they build on each other. */
const packageNames = () => {
  const order = ["core", "platform-node"]
  const place = (name) => order.includes(name) ? order.indexOf(name) : order.length
  return readdirSync(join(root, "packages"))
    .filter((name) => existsSync(join(root, "packages", name, "src", "index.ts")))
    .sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
}

const sourceOf = (name, file) => posix(join(root, "packages", name, "src", file))

/** What is parsed once: declarations of others, which do not change meanwhile. */
const libraries = new Map()

/** The packages see each other's sources. `overlay` replaces the text of files, by absolute path. */
const createProgram = (names, overlay) => {
  const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), (path) => readFileSync(path, "utf8"))
  const { options } = ts.convertCompilerOptionsFromJson(
    {
      ...config.compilerOptions,
      ...{ noEmit: true, composite: false, incremental: false, declaration: false, declarationMap: false },
      ...{ plugins: [], types: [], baseUrl: "." },
      paths: Object.fromEntries(names.map((name) => [`@store-api/${name}/*`, [`packages/${name}/src/*.ts`]]))
    },
    root
  )
  const host = ts.createCompilerHost(options, true)
  const readFile = host.readFile.bind(host)
  host.readFile = (path) => overlay.get(posix(path)) ?? readFile(path)
  host.getSourceFile = (path, version) => {
    const text = libraries.has(path) ? undefined : host.readFile(path)
    const source = text === undefined ? libraries.get(path) : ts.createSourceFile(path, text, version, true)
    if (source?.isDeclarationFile === true) libraries.set(path, source)
    return source
  }
  return ts.createProgram(names.map((name) => sourceOf(name, "index.ts")), options, host)
}

/** The parts of a doc comment: its text, and its tags in order. A tag within a code block is part of the code. */
const parseDoc = (source, range) => {
  const lines = source.text.slice(range.pos, range.end)
    .replace(/^\/\*\*/, "").replace(/\*\/$/, "").split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
  const parts = [{ tag: "", lines: [] }]
  let inCode = false
  for (const line of lines) {
    if (/^\s*```/.test(line)) inCode = !inCode
    const [, tag, rest] = inCode ? [] : /^\s*@(\w+)\s*(.*)$/.exec(line) ?? []
    if (tag === undefined) parts.at(-1).lines.push(line)
    else parts.push({ tag, lines: [rest] })
  }
  const [text, ...tags] = parts.map(({ lines, tag }) => ({ tag, text: lines.join("\n").trim() }))
  const of = (tag) => tags.filter((part) => part.tag === tag).map((part) => part.text)
  return {
    text: text.text,
    line: source.getLineAndCharacterOfPosition(range.pos).line + 1,
    tags: tags.map(({ tag }) => tag),
    since: of("since")[0],
    category: of("category")[0],
    examples: of("example"),
    see: of("see").flatMap((names) => names.split(/,\s*/))
  }
}

const isDoc = (source) => ({ pos }) => source.text.startsWith("/**", pos)

/** The doc comment that stands before a node. */
const docOf = (node) => {
  const source = node.getSourceFile()
  const range = ts.getLeadingCommentRanges(source.text, node.getFullStart())?.filter(isDoc(source)).at(-1)
  return range === undefined ? undefined : parseDoc(source, range)
}

/** Source text as it was written, without its comments. */
const written = (node) => {
  const text = node.getText()
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, text)
  let result = ""
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    const isComment = kind === ts.SyntaxKind.SingleLineCommentTrivia || kind === ts.SyntaxKind.MultiLineCommentTrivia
    if (!isComment) result += scanner.getTokenText()
  }
  return result.split("\n").map((line) => line.trimEnd()).filter((line) => line !== "").join("\n")
}

/** A type as a user writes it. Of a module that its source does not import, the compiler gives the path. */
const typeText = (checker, type, node) =>
  checker.typeToString(type, node, ts.TypeFormatFlags.NoTruncation)
    .replace(/import\("[^"]*?(\w+)"\)/g, "$1")

/** The fields of type literals within a type; `deep`: also of those that are the type of a field, and so on. */
const fieldsOfType = (type, prefix, deep) => {
  if (type === undefined) return []
  if (ts.isTypeLiteralNode(type)) return fieldsOf(type.members, prefix, deep)
  if (ts.isUnionTypeNode(type) || ts.isIntersectionTypeNode(type)) {
    return type.types.flatMap((part) => fieldsOfType(part, prefix, deep))
  }
  return ts.isParenthesizedTypeNode(type) ? fieldsOfType(type.type, prefix, deep) : []
}

const fieldsOf = (members, prefix, deep) =>
  members.flatMap((member) => {
    const path = `${prefix}${member.name?.getText() ?? ""}`
    return [
      { path, text: docOf(member)?.text ?? "" },
      ...(deep && ts.isPropertySignature(member) ? fieldsOfType(member.type, `${path}.`, deep) : [])
    ]
  })

/** The fields that a schema is made of: the first object among the arguments of a call, or of the call it starts with. */
const schemaFields = (expression) => {
  if (expression === undefined || !ts.isCallExpression(expression)) return undefined
  const own = expression.arguments.find(ts.isObjectLiteralExpression)
  const isSchema = /^Schema\.(Class|TaggedError|Struct)\b/.test(expression.getText())
  return isSchema ? own?.properties ?? schemaFields(expression.expression) : undefined
}

const documented = (properties) =>
  properties.map((property) => ({ path: property.name.getText(), text: docOf(property)?.text ?? "" }))

/** The fields with the types that a value of the schema has. */
const fieldTypes = (checker, type, properties, node) =>
  properties.map(({ name }) => {
    const property = type.getProperty(name.text)
    return `  readonly ${name.getText()}: ${typeText(checker, checker.getTypeOfSymbolAtLocation(property, node), node)}`
  })

/** The lines after the first moved to the left, as far as all can. */
const dedent = (text) => {
  const [first, ...rest] = text.split("\n")
  const indent = Math.min(...rest.map((line) => line.length - line.trimStart().length))
  return [first, ...rest.map((line) => line.slice(indent))].join("\n")
}

const parameterText = (checker, parameter) => {
  const optional = parameter.initializer !== undefined || parameter.questionToken !== undefined ? "?" : ""
  const type = parameter.type === undefined
    ? typeText(checker, checker.getTypeAtLocation(parameter), parameter)
    : dedent(written(parameter.type))
  // What a function takes apart is one object to its caller.
  const name = ts.isObjectBindingPattern(parameter.name) ? "options" : parameter.name.getText()
  return `${name}${optional}: ${type}`
}

const functionText = (checker, declared) => {
  const generics = declared.typeParameters?.map(written).join(", ")
  const parameters = declared.parameters.map((parameter) => parameterText(checker, parameter))
  const result = declared.type === undefined ? "unknown" : written(declared.type)
  const oneLine = parameters.join(", ")
  const list = oneLine.length + result.split("\n")[0].length > 90 && !oneLine.includes("\n")
    ? `\n${parameters.map((parameter) => `  ${parameter}`).join(",\n")}\n`
    : oneLine
  return `${generics === undefined ? "" : `<${generics}>`}(${list}) => ${result}`
}

const ofClass = (checker, statement) => {
  const [heritage] = statement.heritageClauses ?? []
  const expression = heritage?.types[0]?.expression
  const name = statement.name.text
  const properties = schemaFields(expression)
  if (properties === undefined) {
    return { name, kind: "class", signature: `class ${name} ${written(heritage)}`, fields: [] }
  }
  const type = checker.getTypeAtLocation(statement)
  const base = /^Schema\.\w+/.exec(expression.getText())[0]
  const lines = fieldTypes(checker, type, properties, statement)
  return {
    name,
    kind: "class",
    signature: `class ${name} extends ${base} {\n${lines.join("\n")}\n}`,
    fields: documented(properties)
  }
}

const ofType = (statement) => ({
  name: statement.name.text,
  kind: "type",
  signature: written(statement).replace(/^export /, ""),
  fields: ts.isInterfaceDeclaration(statement)
    ? fieldsOf(statement.members, "", true)
    : ts.isTypeReferenceNode(statement.type)
    ? (statement.type.typeArguments ?? []).flatMap((argument) => fieldsOfType(argument, "", false))
    : fieldsOfType(statement.type, "", false)
})

const ofVariable = (checker, declaration) => {
  const name = declaration.name.text
  const { initializer, type } = declaration
  if (initializer !== undefined && ts.isArrowFunction(initializer)) {
    const fields = initializer.parameters.flatMap((parameter) =>
      fieldsOfType(parameter.type, `${parameter.name.getText()}.`, true)
    )
    return { name, kind: "function", signature: `const ${name}: ${functionText(checker, initializer)}`, fields }
  }
  const actual = checker.getTypeAtLocation(declaration)
  const kind = actual.getCallSignatures().length > 0 ? "function" : "constant"
  const properties = schemaFields(initializer)
  if (properties !== undefined) {
    const value = checker.getTypeOfSymbolAtLocation(actual.getProperty("Type"), declaration)
    const lines = fieldTypes(checker, value, properties, declaration)
    return {
      name,
      kind,
      signature: `const ${name}: Schema.Struct // its Type:\n{\n${lines.join("\n")}\n}`,
      fields: documented(properties)
    }
  }
  if (type !== undefined) return { name, kind, signature: `const ${name}: ${written(type)}`, fields: [] }
  const text = typeText(checker, actual, declaration)
  return {
    name,
    kind,
    signature: text.length > 160 ? `const ${name} = ${written(initializer)}` : `const ${name}: ${text}`,
    fields: []
  }
}

/** `export const { $is: is, $match: match } = …`: the names are of one statement, and share its text. */
const ofPattern = (declaration) =>
  declaration.name.elements.map((element) => ({
    name: element.name.getText(),
    kind: "function",
    signature: `const ${written(declaration)}`,
    fields: []
  }))

const isExported = (statement) => statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true

const declaredBy = (checker, statement) => {
  if (!isExported(statement)) return []
  if (ts.isClassDeclaration(statement)) return [ofClass(checker, statement)]
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) return [ofType(statement)]
  if (!ts.isVariableStatement(statement)) {
    const { line } = statement.getSourceFile().getLineAndCharacterOfPosition(statement.getStart())
    throw new Error(`${statement.getSourceFile().fileName}:${line + 1}: an export of a kind that nobody expected`)
  }
  return statement.declarationList.declarations.flatMap((declaration) =>
    ts.isIdentifier(declaration.name) ? [ofVariable(checker, declaration)] : ofPattern(declaration)
  )
}

const entriesOf = (checker, statement) => {
  const source = statement.getSourceFile()
  const doc = docOf(statement)
  if (doc?.tags.includes("internal") === true) return []
  const line = source.getLineAndCharacterOfPosition(statement.getStart()).line + 1
  return declaredBy(checker, statement).map((entry) => ({ ...entry, line, doc }))
}

const moduleSpecifiers = (source) =>
  source.statements.filter(ts.isExportDeclaration)
    .filter(({ moduleSpecifier }) => moduleSpecifier !== undefined)
    .map((statement) => ({ statement, from: statement.moduleSpecifier.text.replace(/^\.\/|\.js$/g, "") }))

const reexportsOf = (source) =>
  moduleSpecifiers(source).flatMap(({ from, statement }) =>
    (statement.exportClause?.elements ?? []).map((element) => ({ name: element.name.getText(), from }))
  )

/** What a source knows of other modules, under the names that it gives them. */
const importsOf = (source) =>
  source.statements.filter(ts.isImportDeclaration).flatMap(({ importClause, moduleSpecifier }) => {
    const [, module] = /^(?:\.|@store-api\/[\w-]+)\/(\w+)(?:\.js)?$/.exec(moduleSpecifier.text) ?? []
    const bindings = importClause?.namedBindings
    if (module === undefined || bindings === undefined) return []
    return ts.isNamespaceImport(bindings)
      ? [{ alias: bindings.name.text, module }]
      : bindings.elements.map(({ name, propertyName }) => ({
        alias: name.text,
        module,
        name: (propertyName ?? name).text
      }))
  })

/** As a user sees it, whatever the source calls another module. */
const withoutAliases = (signature, imports) =>
  imports.filter(({ name }) => name === undefined)
    .reduce(
      (text, { alias, module }) => text.replace(new RegExp(`(?<![\\w.])${alias}\\.`, "g"), `${module}.`),
      signature
    )

const moduleDoc = (source) => {
  const range = ts.getLeadingCommentRanges(source.text, 0)?.find(isDoc(source))
  return range === undefined ? undefined : parseDoc(source, range)
}

const readModule = (program, packageName, name) => {
  const source = program.getSourceFile(sourceOf(packageName, `${name}.ts`))
  const imports = importsOf(source)
  return {
    name,
    file: posix(relative(root, source.fileName)),
    doc: moduleDoc(source),
    entries: source.statements.flatMap((statement) => entriesOf(program.getTypeChecker(), statement))
      .map((entry) => ({ ...entry, signature: withoutAliases(entry.signature, imports) })),
    imports,
    reexports: reexportsOf(source)
  }
}

/** All that is public, package by package, module by module, in the order of the sources. */
export const read = (overlay = new Map()) => {
  const names = packageNames()
  const program = createProgram(names, overlay)
  return names.map((name) => {
    const index = program.getSourceFile(sourceOf(name, "index.ts"))
    return {
      name,
      title: `@store-api/${name}`,
      doc: moduleDoc(index),
      modules: moduleSpecifiers(index).map(({ from }) => readModule(program, name, from))
    }
  })
}
