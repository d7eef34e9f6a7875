/** Checks of docstrings that TypeDoc itself lacks. */
import { ReflectionKind } from "typedoc"

const { Class, Function, Interface, Module, Parameter, Property, TypeAlias } = ReflectionKind

const commentOf = ({ comment, signatures }) => comment ?? signatures?.[0].comment

const says = (comment) => /^[^]{12,}[.:]/.test(comment?.summary.map(({ text }) => text).join("") ?? "")

/** Constants and types may refer to the example of another name instead. */
const lacking = (reflection, categories) => {
  const comment = commentOf(reflection)
  const textOf = (tag) => comment?.getTag(tag)?.content[0].text.trim() ?? ""
  const isModule = reflection.kindOf(Module)
  const needsExample = reflection.kindOf([Class, Function])
  const examples = comment?.getTags("@example") ?? []
  const isExample = ({ content: [{ text }] }) =>
    /^```ts\n[^]*from "@store-api\/[^]*\n```$/.test(text) && new RegExp(`\\b${reflection.name}\\b`).test(text)
  const seen = comment?.getTag("@see")?.content.filter(({ kind }) => kind !== "text") ?? []
  return [
    ...says(comment) ? [] : ["a sentence that says what it is"],
    .../^\d+\.\d+\.\d+$/.test(textOf("@since")) ? [] : ["@since"],
    ...isModule || categories.includes(textOf("@category")) ? [] : ["a @category of typedoc.json"],
    ...isModule || examples.length > 0 || (!needsExample && seen.length > 0) ? [] : ["@example"],
    ...examples.every(isExample) ? [] : ["an @example that imports and uses it"],
    ...seen.every(({ target }) => target && commentOf(target)?.getTag("@example"))
      ? []
      : ["an example where @see points"]
  ]
}

/**
 * Whether users see the field: one of an interface or class, of an object in one, or of a function parameter.
 */
const isPublicField = ({ parent }) => {
  if (parent.kindOf([Class, Interface])) return true
  const owner = parent.parent
  return [owner.type, ...owner.type?.types ?? []].some((type) => type?.declaration === parent) &&
    (owner.kindOf(TypeAlias) || owner.kindOf(Property) && isPublicField(owner) ||
      owner.kindOf(Parameter) && owner.parent.parent.kindOf(Function))
}

export const problems = (project, categories) => [
  ...project.getReflectionsByKind(Module).flatMap((module) =>
    [module, ...module.children.filter((child) => !child.kindOf(Module) && !child.isReference())].flatMap((
      reflection
    ) => lacking(reflection, categories).map((what) => `${reflection.getFriendlyFullName()} lacks ${what}`))
  ),
  ...project.getReflectionsByKind(Property).filter((field) => isPublicField(field) && !says(field.comment))
    .map((field) => `${field.getFriendlyFullName()} lacks a sentence`)
]
