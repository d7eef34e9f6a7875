/** `node --import` this to run the workspace's TypeScript sources as they are: no build that could be stale. */
import { readFile } from "node:fs/promises"
import { register } from "node:module"
import { fileURLToPath } from "node:url"
import { isMainThread } from "node:worker_threads"

if (isMainThread) register(import.meta.url) // the hooks run in a thread of their own
const { default: ts } = isMainThread ? {} : await import("typescript")

const packages = new URL("../../../", import.meta.url)

export const resolve = (specifier, context, next) => {
  const [, name, module = "index"] = /^@store-api\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? []
  if (name !== undefined) return next(new URL(`${name}/src/${module}.ts`, packages).href, context)
  const fromSource = specifier.startsWith(".") && context.parentURL?.endsWith(".ts")
  return next(fromSource ? specifier.replace(/\.js$/, ".ts") : specifier, context)
}

export const load = async (url, context, next) => {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return next(url, context)
  const source = await readFile(fileURLToPath(url), "utf8")
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true }
  })
  return { format: "module", shortCircuit: true, source: outputText }
}
