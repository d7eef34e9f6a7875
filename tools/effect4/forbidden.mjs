/** Members that exist in both majors of Effect and mean different things: the compiler says nothing. */
import ts from "typescript"

export const forbidden = {
  effect3: {
    "Array.partition": "Effect 4 gives what passes first",
    "Config.all": "Effect 4 names only the first that is missing; use internal/configOf",
    "Effect.disconnect": "Effect 4 has none; use internal/disconnected",
    "HttpBody.text": "Effect 4 keeps the text, and prints it; use HttpBody.uint8Array",
    "HttpClientRequest.prependUrl": "Effect 4 puts a slash before a query; use HttpClientRequest.setUrl",
    "Schema.Date": "in Effect 4 it is not a text"
  },
  effect4: {
    "Clock.currentTimeNanos": "in Effect 4 it is the wall clock; monotonicTimeNanos is not",
    "currentTimeNanosUnsafe": "it is the wall clock; monotonicTimeNanosUnsafe is not",
    "Effect.contextWith": "it expects an effect",
    "HttpBody.text": "it keeps the text, and prints it",
    "Schema.Date": "in Effect 4 it is not a text"
  }
}

/** The forbidden members that a source uses, each with its line. A name without a module is a property of any value. */
export const forbiddenIn = (text, list) => {
  const ast = ts.createSourceFile("source.ts", text, ts.ScriptTarget.ES2022, true)
  const modules = new Map()
  for (const statement of ast.statements.filter(ts.isImportDeclaration)) {
    const bindings = statement.importClause?.namedBindings
    if (bindings !== undefined && ts.isNamespaceImport(bindings)) {
      modules.set(bindings.name.text, statement.moduleSpecifier.text.split("/").pop())
    }
  }
  const found = []
  const visit = (node) => {
    if (ts.isPropertyAccessExpression(node)) {
      const names = [`${modules.get(node.expression.getText())}.${node.name.text}`, node.name.text]
      const member = names.find((name) => Object.hasOwn(list, name))
      const row = ast.getLineAndCharacterOfPosition(node.getStart()).line + 1
      // configOf is what stands for it.
      if (member !== undefined && !/configOf = Config\.all|: .* = Effect\.disconnect/.test(node.parent.getText())) {
        found.push({ member, row })
      }
    }
    node.forEachChild(visit)
  }
  visit(ast)
  return found
}
