/**
 * Adapts TypeDoc to Effect's modules: one page per namespace of an `index.ts`, with types as in the sources. Reports
 * what a docstring lacks.
 */
import { Application, Converter, ReflectionKind, Renderer, UnknownType } from "typedoc"
import {
  MarkdownPageEvent,
  MarkdownTheme,
  MarkdownThemeContext,
  ModuleRouter
} from "typedoc-plugin-markdown"
import ts from "typescript"
import { noteOn } from "../effect4/transform.mjs"

const { Class, Function, Interface, Module, Property, Variable } = ReflectionKind

const moduleOf = (reflection) =>
  reflection.kindOf(Module) ? reflection : moduleOf(reflection.parent)

/** Finds the target of `name`, `Module`, `Module.name`, `Module.method` of its service, `Type.field` or `Error`. */
const findTarget = (project, text, from) => {
  const [first, second] = text.split(".")
  const own = moduleOf(from)
  const [module, error] = [Module, Class].map((kind) =>
    project.getReflectionsByKind(kind).find(({ name }) => name === first)
  )
  return second === undefined
    ? own.getChildByName([first]) ?? module?.getChildByName([first]) ?? module ?? error
    : module?.getChildByName([second]) ?? module?.getChildByName(["Service", second]) ??
      own.getChildByName([first, second])
}

const linkTo = (target, text) => ({ kind: "inline-tag", tag: "@linkcode", text, target })

const listed = (parts) =>
  parts.flatMap((part) => [{ kind: "text", text: ", " }, part]).slice(1)

/** Links the first mention of the specification. Every module has its page in `api/PACKAGE/`. */
const linkSpecification = ({ summary }) => {
  const mention = /\bthe\s+specification\b(?!')/
  const part = summary.find(({ kind, text }) => kind === "text" && mention.test(text))
  if (part !== undefined) {
    part.text = part.text.replace(mention, "[$&](../../specification.md)")
  }
}

/** Turns names in backticks and after `@see` into links. */
const linkNames = (project, reflection) => {
  const link = (text) => {
    const target = findTarget(project, text, reflection)
    const isOwn = target === reflection || target === reflection.parent
    return target === undefined || isOwn
      ? { kind: "code", text: `\`${text}\`` }
      : linkTo(target, text)
  }
  const { comment } = reflection
  comment.summary = comment.summary.map((part) =>
    part.kind === "code" ? link(part.text.slice(1, -1)) : part
  )
  for (const tag of comment.getTags("@see")) {
    tag.content = listed(tag.content[0].text.trim().split(/,\s*/).map(link))
  }
}

/* Checks of docstrings that TypeDoc itself lacks. */

const commentOf = ({ comment, signatures }) => comment ?? signatures?.[0].comment

/** Classes and functions need an example. Constants and types may refer to that of another name instead. */
const lacking = (reflection, categories) => {
  const comment = commentOf(reflection)
  const textOf = (tag) => comment?.getTag(tag)?.content[0].text.trim() ?? ""
  const needsExample = reflection.kindOf([Class, Function]) ||
    comment?.getTag("@see") === undefined
  return [
    ...comment?.hasVisibleComponent() ? [] : ["a sentence"],
    .../^\d+\.\d+\.\d+$/.test(textOf("@since")) ? [] : ["@since"],
    ...categories.includes(textOf("@category")) ? [] : ["a @category of typedoc.json"],
    ...needsExample && !textOf("@example").includes(reflection.name)
      ? ["an @example that uses it"]
      : []
  ]
}

const isPublicField = ({ parent }) => parent.kindOf([Class, Interface])

const problems = (project, categories) => {
  const modules = project.getReflectionsByKind(Module)
  const names = modules.flatMap(({ children }) => children)
    .filter((child) => !child.kindOf(Module) && !child.isReference())
  const fields = project.getReflectionsByKind(Property).filter(isPublicField)
  return [
    ...names.flatMap((reflection) =>
      lacking(reflection, categories).map((what) =>
        `${reflection.getFriendlyFullName()} lacks ${what}`
      )
    ),
    ...[...modules, ...fields].filter(({ comment }) => !comment?.hasVisibleComponent())
      .map((reflection) => `${reflection.getFriendlyFullName()} lacks a sentence`)
  ]
}

/** Only core is large enough for one page per module. The modules of any other package share its page. */
const sharesPage = ({ kind, name, parent }) =>
  kind === Module && parent?.kind === Module && !/core$/.test(parent.name)

class Router extends ModuleRouter {
  buildChildPages(reflection, pages) {
    if (sharesPage(reflection)) this.buildAnchors(reflection, reflection.parent)
    else super.buildChildPages(reflection, pages)
  }
}

class Theme extends MarkdownTheme {
  getRenderContext(page) {
    const context = new MarkdownThemeContext(this, page, this.application.options)
    const { groups, pageTitle, signature } = context.partials
    const { name, parent } = page.model
    Object.assign(context.partials, {
      // The path of a module, so that its anchor is not that of a name on the page.
      pageTitle: () => parent?.kindOf(Module) ? `${parent.name}/${name}` : pageTitle(),
      // The title of a function shows the types, so the table of parameters is kept only if it has descriptions.
      signature: (...given) =>
        signature(...given).replace(/#+ (Type )?Parameters\s+\|[^D\n]*\n(\|.*\n?)*/g, ""),
      signatureReturns: () => "",
      groups: (model, options) =>
        sharesPage(model.children[0])
          ? context.partials.members(model.children, options)
          : groups(model, options)
    })
    return context
  }
}

export const load = (app) => {
  const { converter, options, renderer } = app
  renderer.defineRouter("effect", Router)
  renderer.defineTheme("effect", Theme)

  renderer.on(MarkdownPageEvent.END, (page) => {
    if (page.contents.includes("```ts")) {
      page.contents = page.contents.replace(
        /^# .*\n/m,
        `$&\n${noteOn(`docs/reference/api/${page.url}`)}\n`
      )
    }
  })

  const convertType = converter.convertType.bind(converter)
  converter.convertType = (context, type, node) => convertType(context, node ?? type)

  converter.on(Converter.EVENT_CREATE_PARAMETER, (_, parameter) => {
    if (parameter.name === "__namedParameters") parameter.name = "options"
  })

  converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    const declaration = context.getSymbolFromReflection(reflection)?.declarations?.[0]
    if (declaration !== undefined && ts.isSourceFile(declaration)) {
      reflection.kind = Module
      reflection.comment = context.getNodeComment(declaration.statements[0], false)
      // A module outside an index.ts has its path as its name.
      const [, name, path] =
        /packages\/([^/]*)\/src\/(?:index|([^/]*))\.ts$/.exec(declaration.fileName) ?? []
      if (name !== undefined && (path === undefined || reflection.parent.isProject())) {
        reflection.name = ["@store-api", name, path].filter(Boolean).join("/")
      }
    }
    // The type of a schema would repeat its definition.
    if (
      reflection.kindOf(Variable) &&
      declaration.initializer?.getText().startsWith("Schema.Struct(")
    ) {
      reflection.type = new UnknownType("Schema.Struct")
    }
  })

  // The constructor and base class of a Schema class only repeat its fields.
  converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const reflection of project.getReflectionsByKind(Class)) {
      for (const child of [...reflection.children ?? []]) {
        if (!child.kindOf(Property)) project.removeReflection(child)
      }
      if (reflection.children?.length > 0) delete reflection.extendedTypes
    }
  })

  // After TypeDoc's own handlers.
  converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const reflection of Object.values(project.reflections)) {
      if (reflection.comment === undefined) continue
      linkNames(project, reflection)
      linkSpecification(reflection.comment)
    }
  }, -1000)

  app.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    for (const problem of problems(project, options.getValue("categoryOrder"))) {
      app.logger.validationWarning(problem)
    }
  })

  renderer.on(Renderer.EVENT_BEGIN, ({ project }) => {
    for (const reflection of Object.values(project.reflections)) {
      const { children, comment, parent } = reflection
      const since = comment?.getTag("@since")?.content[0].text
      if (since !== undefined) {
        comment.summary.push({ kind: "text", text: `\n\n*Since ${since}*` })
      }
      if (reflection.kindOf(Module) && parent.kindOf(Module)) {
        const links = new Map(children.map((child) => [child.name, linkTo(child, child.name)]))
        comment.summary.push(
          { kind: "text", text: "\n\nNames: " },
          ...listed([...links.values()])
        )
      }
    }
  })
}
