/** Members that exist in both majors with different meanings, which the compiler does not report. */
import ts from "typescript"

const forbidden = {
  effect3: {
    "Array.partition": "Effect 4 returns the passing elements first",
    "Config.all": "Effect 4 names only the first missing variable. Use internal/configOf",
    "Effect.disconnect": "Effect 4 does not have it. Use internal/disconnected",
    "HttpBody.text": "Effect 4 keeps the text and prints it. Use HttpBody.uint8Array",
    "HttpClientRequest.prependUrl": "Effect 4 puts a slash before a query. Use HttpClientRequest.setUrl",
    "Schema.Date": "Effect 4 does not decode it from a string"
  },
  effect4: {
    "Clock.currentTimeNanos": "it is the wall clock. Generate monotonicTimeNanos",
    "currentTimeNanosUnsafe": "it is the wall clock. Generate monotonicTimeNanosUnsafe",
    "Effect.contextWith": "it expects an effect",
    "HttpBody.text": "it keeps the text and prints it",
    "Schema.Date": "it does not decode a string"
  }
}

/** The seams, which hide such a member. */
const isSeam = (text) => /configOf = Config\.all|: .* = Effect\.disconnect/.test(text)

/** Returns the forbidden members of one line in a source. A name without a module is a property of any value. */
export const forbiddenIn = (text, line) => {
  const ast = ts.createSourceFile("source.ts", text, ts.ScriptTarget.ES2022, true)
  const modules = new Map()
  for (const statement of ast.statements.filter(ts.isImportDeclaration)) {
    const bindings = statement.importClause?.namedBindings
    if (bindings !== undefined && ts.isNamespaceImport(bindings)) {
      modules.set(bindings.name.text, statement.moduleSpecifier.text.split("/").pop())
    }
  }
  /** @type {Array<{ row: number, problem: string }>} */
  const found = []
  const visit = (node) => {
    if (ts.isPropertyAccessExpression(node) && !isSeam(node.parent.getText())) {
      const names = [`${modules.get(node.expression.getText())}.${node.name.text}`, node.name.text]
      const member = names.find((name) => Object.hasOwn(forbidden[line], name))
      const row = ast.getLineAndCharacterOfPosition(node.getStart()).line + 1
      if (member !== undefined) found.push({ row, problem: `${member} is forbidden: ${forbidden[line][member]}` })
    }
    node.forEachChild(visit)
  }
  visit(ast)
  return found
}
