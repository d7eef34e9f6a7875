/**
 * The reference as Markdown: an index, an index for each package, a page for each module. It holds nothing that changes
 * with each edit of a source, such as lines.
 */

const notice = "<!-- Written by `npm run reference` from the doc comments: change those. -->"

/** GitHub's anchor of a heading, when those before it on the page are known. */
const anchors = () => {
  const seen = new Map()
  return (heading) => {
    const slug = heading.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}

const moduleTitle = (module, { title }) => `${title}/${module.name}`

/** A name may stand for a value and a type: they share a heading. */
const namesOf = ({ entries }) => [...new Set(entries.map(({ name }) => name))]

const layoutOf = (module, pack) => {
  const anchor = anchors()
  anchor(moduleTitle(module, pack))
  return {
    module,
    pack,
    path: `${pack.name}/${module.name}.md`,
    anchors: new Map(namesOf(module).map((name) => [name, anchor(name)]))
  }
}

const hasField = ({ module }, type, field) =>
  module.entries.some(({ fields, name }) => name === type && fields.some(({ path }) => path === field))

/**
 * Finds what a name in backticks stands for: a name of this module, `Module`, `Module.name`, `Module.field` of its service,
 * `Type.field`, or a class of another module. Anything else is no link.
 */
const createLinks = (layouts) => {
  const moduleNamed = (name, from) =>
    layouts.find(({ module, pack }) => module.name === name && pack === from.pack) ??
      layouts.find(({ module }) => module.name === name)
  const reexported = (layout, name) => {
    const found = layout.module.reexports.find((reexport) => reexport.name === name)
    return found === undefined ? undefined : within(moduleNamed(found.from, layout), name)
  }
  const within = (layout, name) => layout.anchors.has(name) ? { layout, name } : reexported(layout, name)
  const unique = (name) => {
    const found = layouts.filter((layout) =>
      layout.module.entries.some((entry) => entry.name === name && entry.kind === "class")
    )
    return found.length === 1 ? { layout: found[0], name } : undefined
  }
  const dotted = (first, second, from) => {
    const module = moduleNamed(first, from)
    const named = module === undefined ? undefined : within(module, second)
    if (named !== undefined) return named
    if (module !== undefined && hasField(module, "Service", second)) return { layout: module, name: "Service" }
    const type = within(from, first)
    return type !== undefined && hasField(type.layout, type.name, second) ? type : undefined
  }
  const isField = (name, { module }) =>
    module.entries.some(({ fields }) => fields.some(({ path }) => path.split(".").includes(name)))
  return (text, from) => {
    const [first, second, ...rest] = text.split(".")
    if (rest.length > 0 || !/^\w+(\.\w+)?$/.test(text)) return undefined
    if (second !== undefined) return dotted(first, second, from)
    if (!isField(first, from)) {
      const own = within(from, first)
      if (own !== undefined) return own
    }
    const imported = from.module.imports.find(({ alias, name }) => alias === first && name !== undefined)
    const layout = imported === undefined ? undefined : moduleNamed(imported.module, from)
    if (layout?.anchors.has(imported?.name) === true) return { layout, name: imported.name }
    const module = /^[A-Z]/.test(first) ? moduleNamed(first, from) : undefined
    return module === undefined ? unique(first) : within(module, first) ?? { layout: module, name: undefined }
  }
}

const href = (target, from) => {
  const anchor = target.name === undefined ? "" : `#${target.layout.anchors.get(target.name)}`
  if (target.layout === from) return anchor
  const path = target.layout.pack === from.pack ? target.layout.module.name : `../${target.layout.path.slice(0, -3)}`
  return `${path}.md${anchor}`
}

/** Text of a doc comment of a module, its names linked as on the page it is shown on. Code blocks stay as they are. */
const linked = (text, links, from, own, page = from) => {
  let inCode = false
  return text.split("\n").map((line) => {
    if (line.startsWith("```")) inCode = !inCode
    return inCode ? line : line.replace(/`([^`]+)`/g, (code, name) => {
      const target = links(name, from)
      const isOwn = target?.layout === from && (target.name === own || target.name === undefined)
      return target === undefined || isOwn ? code : `[${code}](${href(target, page)})`
    })
  }).join("\n")
}

/** Lines that belong together are one: GitHub would keep the breaks in some places. */
const paragraph = (text) => text.replace(/\n+/g, " ")

const firstSentence = (text) => {
  const first = paragraph(text.split("\n\n")[0])
  return /^.*?\.(?=\s|$)/.exec(first)?.[0] ?? first
}

const cell = (text) => text.replaceAll("|", "\\|")

const fence = (code) => `\`\`\`ts\n${code}\n\`\`\``

/** The types of ours in a declaration: a code block can hold no links. */
const typesIn = (entry, show) => {
  const names = entry.signature.replace(/"[^"]*"/g, "").match(/(?<![\w.])(?:[A-Z]\w*\.)?[A-Z]\w*\b(?!\.)/g) ?? []
  const shown = [...new Set(names)].map((name) => show(`\`${name}\``)).filter((text) => text.startsWith("["))
  return shown.length === 0 ? "" : `Types: ${shown.join(", ")}.`
}

const declaration = (entry, links, layout) => {
  const show = (text) => linked(text, links, layout, entry.name)
  const fields = entry.fields.map(({ path, text }) => `- **\`${path}\`**: ${show(paragraph(text))}`)
  const see = (entry.doc?.see ?? []).map((name) => show(`\`${name}\``))
  return [
    fence(entry.signature),
    typesIn(entry, show),
    show(entry.doc?.text ?? ""),
    fields.join("\n"),
    ...(entry.doc?.examples ?? []).map((example) => `Example:\n\n${example}`),
    see.length > 0 ? `An example is at ${see.join(", ")}.` : "",
    `*${entry.doc?.category}, since ${entry.doc?.since}*`
  ]
}

const modulePage = (layout, links) => {
  const { module, pack } = layout
  const show = (text, own) => linked(text, links, layout, own)
  const rows = namesOf(module).map((name) => {
    const { doc } = module.entries.find((entry) => entry.name === name)
    return `| [\`${name}\`](#${layout.anchors.get(name)}) | ${doc?.category} | ${
      cell(show(firstSentence(doc?.text ?? ""), name))
    } |`
  })
  const others = module.reexports.map(({ from, name }) => show(`\`${from}.${name}\``))
  return [
    notice,
    `[Reference](../README.md) / [${pack.title}](README.md) / ${module.name}`,
    `# ${moduleTitle(module, pack)}`,
    show(module.doc?.text ?? ""),
    fence(`import { ${module.name} } from "${pack.title}"`),
    ["| name | | |", "|---|---|---|", ...rows].join("\n"),
    others.length > 0 ? `Also here, under the same names: ${others.join(", ")}.` : "",
    ...namesOf(module).flatMap((name) => [
      `## ${name}`,
      ...module.entries.filter((entry) => entry.name === name).flatMap((entry) => declaration(entry, links, layout))
    ])
  ]
}

const packagePage = (pack, layouts, links) => {
  const rows = layouts.map((layout) => {
    const { anchors, module } = layout
    const names = [...anchors].map(([name, anchor]) => `[\`${name}\`](${module.name}.md#${anchor})`)
    const text = linked(firstSentence(module.doc?.text ?? ""), links, layout, undefined, { pack })
    return `| [${module.name}](${module.name}.md) | ${cell(text)} | ${names.join(", ")} |`
  })
  return [
    notice,
    `[Reference](../README.md) / ${pack.title}`,
    `# ${pack.title}`,
    pack.doc?.text ?? "",
    ["| module | | names |", "|---|---|---|", ...rows].join("\n")
  ]
}

const indexPage = (packages) => [
  notice,
  "# Reference",
  "What the packages offer, module by module: what each name is, its units, defaults and errors, and an example that is " +
  "compiled with the tests. \"The specification\" is that of the store API suite's access-token service, cited by heading.",
  ...packages.map(({ doc, modules, name, title }) =>
    [
      `## [${title}](${name}/README.md)`,
      doc?.text ?? "",
      modules.map((module) => `- [${module.name}](${name}/${module.name}.md): ${firstSentence(module.doc?.text ?? "")}`)
        .join("\n")
    ].join("\n\n")
  )
]

const file = (blocks) => `${blocks.filter((block) => block !== "").join("\n\n")}\n`

/** All pages by their path below docs/reference. */
export const render = (packages) => {
  const layouts = packages.flatMap((pack) => pack.modules.map((module) => layoutOf(module, pack)))
  const links = createLinks(layouts)
  return new Map([
    ["README.md", file(indexPage(packages))],
    ...packages.map((pack) => {
      const own = layouts.filter((layout) => layout.pack === pack)
      return [`${pack.name}/README.md`, file(packagePage(pack, own, links))]
    }),
    ...layouts.map((layout) => [layout.path, file(modulePage(layout, links))])
  ])
}
