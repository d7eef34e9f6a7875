/** Rewrites a source for Effect 3 into one for Effect 4, by the rules of rules.mjs. */
import { posix } from "node:path"
import ts from "typescript"
import {
  allowed,
  forbidden,
  members,
  modules,
  omitted,
  patterns,
  properties,
  texts
} from "./rules.mjs"
import { effect4, effect4Version } from "./versions.mjs"

/** How often each rule was applied. */
export const applied = new Map()

const count = (rule) => applied.set(rule, (applied.get(rule) ?? 0) + 1)

/** `Effect` is `effect/Effect`, and so is each module whose name starts with a capital. */
const isEffect = (specifier) => /^(effect|@effect\/[\w-]+)(\/|$)/.test(specifier)
const nameOf = (specifier) => specifier.split("/").pop()

const parse = (text) => ts.createSourceFile("source.ts", text, ts.ScriptTarget.ES2022, true)

/** A pattern is a TypeScript expression, or a type after `type `. `$x` in it is any node, `$$x` the rest of a list. */
const compiled = Object.entries(patterns).map(([pattern, template]) => {
  const type = /^type (.*)/s.exec(pattern)?.[1]
  const [statement] =
    parse(type === undefined ? `(${pattern})` : `type T = ${type}`).statements
  const node = type === undefined ? statement.expression.expression : statement.type
  return { pattern, template, node, isType: type !== undefined }
})

const variableOf = (node) => {
  const name = ts.isTypeReferenceNode(node) ? node.typeName : node
  return ts.isIdentifier(name) && name.text.startsWith("$") ? name.text : undefined
}

const childrenOf = (node) => {
  const children = []
  node.forEachChild((child) => void children.push(child))
  return children
}

const rowOf = (node) =>
  node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1

const isIn = (member, known) => Object.hasOwn(known, member)

/**
 * @param {string} text
 * @param {{
 *   isLibrary?: boolean, isOverlay?: boolean, file?: string,
 *   moduleOf: (name: string) => { specifier: string, barrel?: string } | undefined,
 *   problem: (row: number, problem: string) => void
 * }} line
 * @returns {string}
 */
export const transform = (text, line, isBlock = false) => {
  const source = isBlock || line.isOverlay ?
    text :
    texts.reduce((text, [from, to]) => {
      if (text.includes(from)) count(from)
      return text.replaceAll(from, to)
    }, text.replace(/(?<=@since )[\d.]+/g, effect4Version))
  const ast = parse(source)
  /** What a local name stands for: `module`, and `name` in it where it is not the module. */
  const locals = new Map()
  const imports = ast.statements.filter(ts.isImportDeclaration)
  for (const { importClause, moduleSpecifier: { text: from } } of imports) {
    const bindings = importClause?.namedBindings
    if (!isEffect(from) || bindings === undefined) continue
    if (ts.isNamespaceImport(bindings)) {
      locals.set(bindings.name.text, { module: nameOf(from) })
    } else {
      for (const { name, propertyName } of bindings.elements) {
        const imported = (propertyName ?? name).text
        const isModule = /^(effect(\/[a-z-]+)?|@effect\/[\w-]+)$/.test(from) &&
          /^[A-Z]/.test(imported)
        locals.set(
          name.text,
          isModule ? { module: imported } : { module: nameOf(from), name: imported }
        )
      }
    }
  }
  /** Modules that rules need, each with the first line that needs it. */
  const needed = new Map()
  const need = (name, node) => needed.has(name) || needed.set(name, rowOf(node))
  const textOf = (node) => source.slice(node.getStart(ast), node.end)

  /** `Effect.map` for a member of a module of Effect, whatever the module is called here. */
  const memberOf = (node) => {
    const [left, right] = ts.isPropertyAccessExpression(node)
      ? [node.expression, node.name]
      : ts.isQualifiedName(node)
      ? [node.left, node.right]
      : []
    if (left === undefined || !ts.isIdentifier(left)) return undefined
    const found = locals.get(left.text)
    return found === undefined || found.name !== undefined
      ? undefined
      : `${found.module}.${right.text}`
  }

  /** Reports forbidden members. Those with a new name are correct, except in an import, which is not renamed. */
  const check = (node) => {
    const { module, name } = (ts.isImportSpecifier(node) && locals.get(node.name.text)) || {}
    const member = name === undefined ? memberOf(node) : `${module}.${name}`
    const isRenamed = !line.isOverlay && isIn(member, members)
    const problem = isRenamed
      ? name && "import the module, so that it is renamed"
      : forbidden[member]
    const exception = `${line.file}: ${member}`
    if (isIn(exception, allowed)) count(exception)
    else if (problem !== undefined) line.problem(rowOf(node), `${member}: ${problem}`)
    node.forEachChild(check)
  }
  if (line.isLibrary && !isBlock) check(parse(text))
  // It is written for Effect 4.
  if (line.isOverlay) return text

  /** Whether a node is of the pattern; then `found` has what its variables stand for. */
  const matches = (pattern, node, found) => {
    const variable = variableOf(pattern)
    if (variable !== undefined) {
      found.set(variable, [node])
      return true
    }
    if (ts.isParenthesizedExpression(node) && !ts.isParenthesizedExpression(pattern)) {
      return matches(pattern, node.expression, found)
    }
    if (pattern.kind !== node.kind) return false
    const member = memberOf(node)
    if (member !== undefined) return member === pattern.getText()
    if (ts.isIdentifier(pattern) || ts.isLiteralExpression(pattern)) {
      return pattern.text === node.text
    }
    if (ts.isCallExpression(pattern)) {
      return matches(pattern.expression, node.expression, found) &&
        (pattern.typeArguments === undefined ||
          listMatches(pattern.typeArguments, node.typeArguments ?? [], found)) &&
        listMatches(pattern.arguments, node.arguments, found)
    }
    if (ts.isObjectLiteralExpression(pattern)) {
      const own = new Map(node.properties.map((property) => [property.name?.text, property]))
      return pattern.properties.every((property) => {
        if (ts.isSpreadAssignment(property)) {
          found.set(property.expression.text, [...own.values()])
          return true
        }
        const value = own.get(property.name.text)
        own.delete(property.name.text)
        return value !== undefined &&
          matches(property.initializer, value.initializer ?? value.name, found)
      }) && (own.size === 0 || pattern.properties.some(ts.isSpreadAssignment))
    }
    return listMatches(childrenOf(pattern), childrenOf(node), found)
  }

  const listMatches = (patterns, nodes, found) => {
    const rest = patterns.findIndex((pattern) => variableOf(pattern)?.startsWith("$$"))
    if (rest < 0) {
      return patterns.length === nodes.length &&
        patterns.every((p, i) => matches(p, nodes[i], found))
    }
    const after = patterns.length - rest - 1
    if (nodes.length < patterns.length - 1) return false
    found.set(variableOf(patterns[rest]), nodes.slice(rest, nodes.length - after))
    return patterns.slice(0, rest).every((p, i) => matches(p, nodes[i], found)) &&
      patterns.slice(rest + 1).every((p, i) =>
        matches(p, nodes[nodes.length - after + i], found)
      )
  }

  /** The text between two nodes, and before the first of a list: a comment is kept. */
  const commentsBefore = (node) => {
    const trivia = source.slice(node.pos, node.getStart(ast))
    return trivia.includes("//") ? trivia : ""
  }

  const filled = (template, found, node) => {
    for (const [, name] of template.matchAll(/(?<![\w.$"`/])([A-Z]\w*)\.\w/g)) {
      if (!(name in globalThis)) need(name, node)
    }
    return template.replace(
      /(, )?(\$\$?\w+)(, )?/g,
      (_, before = "", variable, after = "") => {
        const nodes = found.get(variable)
        const text = nodes.map((node) => commentsBefore(node) + emit(node)).join(", ")
        return nodes.length > 0 ? before + text + after : before && after
      }
    ).replace(
      /\["(\w+)"\]: (?:\1\b(?!\.))?/g,
      (text, key) => text.endsWith(" ") ? `${key}: ` : key
    )
  }

  const renamed = (node) => {
    const member = memberOf(node)
    if (member === undefined) return undefined
    const left = ts.isQualifiedName(node) ? node.left : node.expression
    const [module, name] = member.split(".")
    const alias = left.text !== module
    if (isIn(member, members)) {
      count(member)
      const [to, toName] = members[member].split(".")
      if (!alias) need(to, node)
      return `${alias ? left.text : to}.${toName}`
    }
    if (!isIn(module, modules) || alias) return undefined
    need(modules[module], node)
    return `${modules[module]}.${name}`
  }

  /** A property of a value: by its name alone, wherever it is read, taken apart or given. */
  const renamedProperty = (node) => {
    const isRead = ts.isPropertyAccessExpression(node) && memberOf(node) === undefined
    const isGiven = ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node) ||
      ts.isMethodDeclaration(node)
    const isTaken = ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)
    const nameTaken = isTaken ? node.propertyName ?? node.name : undefined
    const key = isRead || isGiven ? node.name : nameTaken
    if (key === undefined || !ts.isIdentifier(key) || !isIn(key.text, properties)) {
      return undefined
    }
    const { of: context = /./, to } = typeof properties[key.text] === "string"
      ? { to: properties[key.text] }
      : properties[key.text]
    if (!context.test(source)) return undefined
    count(key.text)
    if (isRead) return `${emit(node.expression)}${node.questionDotToken ? "?." : "."}${to}`
    if (ts.isPropertyAssignment(node)) return `${to}: ${emit(node.initializer)}`
    if (ts.isMethodDeclaration(node)) return to + source.slice(key.end, node.end)
    return `${to}: ${emit(node.name)}`
  }

  /** The call of a test that cannot run. Its title stands in the report. */
  const skipped = (node) => {
    const title = ts.isCallExpression(node) && node.arguments[0]
    if (
      !title || !ts.isStringLiteralLike(title) || !isIn(title.text, omitted) ||
      !/^(describe|it|test)\b/.test(textOf(node.expression))
    ) {
      return undefined
    }
    count(title.text)
    return `// Without "${title.text}": ${omitted[title.text]}.\nundefined`
  }

  /** A function with a name whose body is one `Effect.gen`. `Effect.fn` would also capture a stack at each call. */
  const generatorFunction = (node) => {
    const { body, parameters, parent, type, typeParameters } = node
    const isEffect = type === undefined || memberOf(type.typeName ?? type) === "Effect.Effect"
    if (
      !line.isLibrary || isBlock || !ts.isArrowFunction(node) ||
      !ts.isVariableDeclaration(parent) || !isEffect ||
      parameters.length === 0 || !ts.isCallExpression(body) ||
      memberOf(body.expression) !== "Effect.gen"
    ) {
      return undefined
    }
    const listOf = (nodes) => nodes.map(emit).join(", ")
    const types = typeParameters === undefined ? "" : `<${listOf(typeParameters)}>`
    const result = type === undefined
      ? ""
      : `: Effect.fn.Return<${listOf(type.typeArguments)}>`
    return `Effect.fnUntraced(function*${types}(${listOf(parameters)})${result} ${
      emit(body.arguments[0].body)
    })`
  }

  const rewrite = (node) => {
    const generator = generatorFunction(node)
    if (generator !== undefined) return generator
    const omission = skipped(node)
    if (omission !== undefined) return omission
    for (const { isType, node: pattern, pattern: rule, template } of compiled) {
      if (isType !== ts.isTypeNode(node) || pattern.kind !== node.kind) continue
      const found = new Map()
      if (!matches(pattern, node, found)) continue
      const filling = typeof template === "string"
        ? template
        : template(
          Object.fromEntries(
            [...found].map(([name, nodes]) => [name.replace(/^\$+/, ""), nodes])
          )
        )
      if (filling === undefined) continue
      count(rule)
      return filled(filling, found, node)
    }
    const local = ts.isIdentifier(node) ? locals.get(node.text) : undefined
    if (local !== undefined) {
      const { module, name } = local
      const to = name === undefined ? modules[module] : undefined
      if (to === undefined || node.text !== module) return undefined
      need(to, node)
      return to
    }
    // The types in these namespaces are in the module itself.
    const isMerged = ts.isQualifiedName(node) &&
      /^(Config|Effect|Metric)\.\1$/.test(memberOf(node.left) ?? "")
    if (isMerged) return `${emit(node.left.left)}.${node.right.text}`
    return renamed(node) ?? renamedProperty(node)
  }

  /** The text from one position to another, in which these nodes are rewritten. */
  const emitAll = (nodes, from, to) => {
    let out = ""
    let at = from
    for (const node of nodes) {
      const start = node.getStart(ast)
      if (start < at) continue
      out += source.slice(at, start) + emit(node)
      at = node.end
    }
    return out + source.slice(at, to)
  }

  const emit = (node) =>
    rewrite(node) ?? emitAll(childrenOf(node), node.getStart(ast), node.end)

  const body = emitAll(
    ast.statements.slice(imports.length),
    imports.at(-1)?.end ?? 0,
    source.length
  )
  const head = source.slice(0, imports[0]?.getStart(ast) ?? 0)
  const written = head + importsOf(imports, locals, needed, body, line, isBlock) + body
  return isBlock ? written : documented(written, text, line)
}

const examples = /^( *\*) ```ts\n([\s\S]*?)^ *\* ```$/gm

/** The code in doc comments is like any source. Its lines are counted in the text as it was read. */
const documented = (written, text, line) => {
  const starts = [...text.matchAll(examples)].map(({ index }) =>
    text.slice(0, index).split("\n").length
  )
  return written.replace(examples, (_, star, block) => {
    const start = starts.shift()
    const code = block.split("\n").map((row) => row.slice(star.length + 1)).join("\n")
    const problem = (row, message) => line.problem(start + row, message)
    const rows = transform(code, { ...line, problem }, true).trimEnd().split("\n")
    return [" ```ts", ...rows.map((row) => row === "" ? "" : ` ${row}`), " ```"].map((row) =>
      star + row
    ).join("\n")
  })
}

/** What a page of the API reference says under its title. The site shows the code for both majors instead. */
export const noteOn = (page) =>
  `The code on this page is for Effect 3. [The site](${
    posix.relative(posix.dirname(page), "docs/guides/effect4.md")
  }#the-code-in-these-docs) shows it for Effect 4 too.`

/** A page in Markdown: its code like any source, and its install lines. */
export const transformPage = (text, line) =>
  text
    .replace(/^With Effect 4:\n\n```ts\n[^]*?^```\n\nWith Effect 3:\n\n/gm, "")
    .replace(/^With Effect 4:\n\n([^]*?)With Effect 3:\n\n```sh\n[^]*?\n```\n\n/gm, "$1")
    .replace(/^```ts\n([\s\S]*?)^```$/gm, (_, code) =>
      `\`\`\`ts\n${transform(code, line, true)}\`\`\``)
    .replace(/(effect|@effect\/platform-node)@\^\S+/g, (_, name) =>
      `${name}@${effect4.ranges[name]}`)
    .replaceAll("`@effect/platform`", "`effect/http`")

/** The order of imports: of Node, of packages, of files. */
const rankOf = (from) => from.startsWith("node:") ? 0 : from.startsWith(".") ? 2 : 1

/** The names that a text uses, and whether it uses them as values. */
const usesOf = (text) => {
  const uses = new Map()
  const visit = (node) => {
    if (ts.isIdentifier(node)) {
      const { parent } = node
      const isName =
        (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent)) &&
          parent.name === node ||
        ts.isQualifiedName(parent) && parent.right === node
      let outer = node
      while (ts.isQualifiedName(outer.parent) || ts.isPropertyAccessExpression(outer.parent)) {
        outer = outer.parent
      }
      const isType = ts.isTypeReferenceNode(outer.parent) ||
        ts.isTypeQueryNode(outer.parent) ||
        ts.isExpressionWithTypeArguments(outer.parent) &&
          (outer.parent.parent.token === ts.SyntaxKind.ImplementsKeyword ||
            ts.isInterfaceDeclaration(outer.parent.parent.parent))
      if (!isName) uses.set(node.text, uses.get(node.text) === true || !isType)
    }
    node.forEachChild(visit)
  }
  visit(parse(text))
  return uses
}

const importsOf = (imports, locals, needed, body, line, isBlock) => {
  const uses = usesOf(body)
  const isBarrel = isBlock ||
    imports.some(({ moduleSpecifier: { text } }) => text === "effect")
  /** Specifier to what is imported from it. */
  const lines = new Map()
  const add = (from, name, local = name) => {
    if (!uses.has(local)) return
    const what = name === local ? name : `${name} as ${local}`
    if (!lines.has(from)) lines.set(from, new Map())
    lines.get(from).set(what, uses.get(local))
  }
  /** A module, by its name in Effect 4. */
  const addModule = (row, name, local = name) => {
    const found = line.moduleOf(name)
    if (found === undefined) {
      if (uses.has(local)) line.problem(row, `Effect 4 has no module ${name}`)
      return
    }
    if (isBarrel && found.barrel !== undefined) add(found.barrel, name, local)
    else add(found.specifier, "*", local)
  }
  const own = []
  for (const declaration of imports) {
    const { importClause, moduleSpecifier: { text: from } } = declaration
    const bindings = importClause?.namedBindings
    if (!isEffect(from) || bindings === undefined) {
      own.push(declaration.getText())
      continue
    }
    const elements = ts.isNamespaceImport(bindings) ? [bindings] : bindings.elements
    for (const { name: local } of elements) {
      const { module, name } = locals.get(local.text)
      const to = modules[module] ?? module
      if (isIn(module, modules)) count(module)
      if (name === undefined) {
        addModule(rowOf(local), to, local.text === module ? to : local.text)
      } else {
        const specifier = /^[A-Z]/.test(to) ? line.moduleOf(to)?.specifier : from
        if (specifier !== undefined) add(specifier, name, local.text)
        else {line.problem(
            rowOf(local),
            `Effect 4 has no module ${to}, from which ${name} is imported`
          )}
      }
    }
  }
  for (const [name, row] of needed) {
    if (!locals.has(name) || modules[locals.get(name).module]) addModule(row, name)
  }
  const written = [...lines].flatMap(([from, found]) => {
    const entries = [...found].filter(([what]) => !what.startsWith("* as") && what !== "*")
    const namespaces = [...found].filter(([what]) => what.startsWith("* as"))
    const isType = entries.every(([, isValue]) => !isValue)
    const list = entries.sort(([a], [b]) => a.localeCompare(b))
      .map(([what, isValue]) => isValue || isType ? what : `type ${what}`)
    return [
      ...namespaces.map(([what, isValue]) =>
        `import ${isValue ? "" : "type "}${what} from "${from}"`
      ),
      ...entries.length === 0
        ? []
        : [`import ${isType ? "type " : ""}{ ${list.join(", ")} } from "${from}"`]
    ]
  })
  return [...own, ...written].map((text) => ({ text, from: /"([^"]*)"$/.exec(text)[1] })).sort(
    (a, b) => rankOf(a.from) - rankOf(b.from) || a.from.localeCompare(b.from)
  ).map(({ text }) => text).join("\n")
}
