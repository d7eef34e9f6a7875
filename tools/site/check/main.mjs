/** Looks at every page of the built site in a real browser; answers what is wrong with it, and with the check itself. */
import { basename } from "node:path"
import { address, fileAsPage, groups, linkedFiles, linkProblems as sourceProblems, pages } from "../pages.mjs"
import { placeOfFile, problemsOf, title } from "../pages.mjs"
import { broken, brokenProblems } from "./broken.mjs"
import { launch } from "./browser.mjs"
import { addressOf, controlPages, controls } from "./controls.mjs"
import { expected } from "./expected.mjs"
import { linkedFrom, linkProblems } from "./links.mjs"
import { inspect } from "./page.mjs"
import { serve } from "./server.mjs"
import { darken, follow, openMenu, search } from "./use.mjs"

/** Does `use` with all, two at a time; the answers are in order. */
const each = async (all, use) => {
  const left = [...all.entries()]
  const answers = []
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) answers[next[0]] = await use(next[1])
  }
  await Promise.all([work(), work()])
  return answers
}

const kindsOf = (
  problems
) => [...new Set(problems.map((problem) => problem.replace(/^https?:\S+: /, "").split(":")[0]))]

/** Each control has what it was made with, and nothing else. */
const controlProblems = async (context, base) => {
  const seen = new Map()
  await each(Object.entries(controls), async ([name, { expects }]) => {
    seen.set(addressOf(name, base), await inspect(context, addressOf(name, base), { alive: false, ...expects }))
  })
  const ofLinks = await linkProblems(seen, base)
  const wrong = Object.entries(controls).flatMap(([name, { finds }]) => {
    const url = addressOf(name, base)
    const kinds = kindsOf([...seen.get(url).problems, ...ofLinks.filter((problem) => problem.startsWith(`${url}: `))])
    return kinds.sort().join() === finds.join() ? [] : [`${name}: found ${kinds.join()} in place of ${finds.join()}`]
  })
  const ofSources = [
    [problemsOf(["docs/a.md"], ["docs/a.md", "docs/b.md"]), 1, "a page in no group"],
    [problemsOf(["docs/a.md"], []), 1, "a group's page that is not there"],
    [problemsOf(["docs/a.md", "docs/a.md"], ["docs/a.md"]), 1, "a page twice"],
    [sourceProblems("docs/a.md", "[a](nowhere.ts) [b](../packages) [c](provider.md)"), 1, "a link to no file"],
    [sourceProblems("docs/a.md", "[a](../.changeset/README.md)"), 1, "a link to a page that is left out"]
  ]
  return [
    ...wrong,
    ...ofSources.flatMap(([found, wanted, name]) => found.length === wanted ? [] : [`${name} is not found`])
  ]
    .map((problem) => `the check itself: ${problem}`)
}

const sitePages = () => [
  ...pages().map((page) => ({ place: address(page), expects: expected(page) })),
  ...linkedFiles().map((path) => ({
    place: address(placeOfFile(path)),
    expects: { title: fileAsPage(path).split("\n")[0].slice(2) }
  })),
  { place: "/404.html", expects: {} }
]

/** What is searched for: the title of each page, and a name of each package of the reference. */
const searches = (at) => [
  ...groups.flatMap(({ pages }) => pages).map((page) => ({ words: title(page), address: at(address(page)) })),
  ...pages().filter((page) => /^docs\/reference\/[^/]+\/[A-Z][a-z]/.test(page)).map((page) => ({
    words: basename(page, ".md"),
    address: at(address(page))
  })),
  { words: "vrxlqzw", address: undefined }
]

export const check = async (executable, folder, basePath) => {
  const server = await serve(folder, basePath, controlPages)
  const base = server.url
  const at = (place) => base + place.slice(1)
  const browser = await launch(executable)
  try {
    const context = await browser.newContext()
    const problems = await controlProblems(context, base)
    const ofUses = await each(Object.keys(broken), (name) => brokenProblems(browser, folder, basePath, name))
    problems.push(...ofUses.flat().map((problem) => `the check itself: ${problem}`))
    const all = sitePages()
    const titles = new Map(all.map(({ expects, place }) => [at(place), expects.title]))
    const seen = new Map()
    const looked = await each(all, async ({ expects, place }) => {
      const found = await inspect(context, at(place), expects)
      seen.set(at(place), found)
      return found.problems.map((problem) => `${at(place)}: ${problem}`)
    })
    problems.push(...looked.flat(), ...await linkProblems(seen, base))
    const links = linkedFrom(seen, base)
    // Broken ones have been told.
    const followed = [...links].filter(([target]) => seen.has(target))
      .map(([target, link]) => ({ ...link, title: titles.get(target) }))
    const drawn = all.filter(({ expects }) => expects.diagrams > 0)
    const sought = searches(at)
    problems.push(
      ...(await each(followed, (link) => follow(context, link))).flat(),
      ...(await each(sought, (words) => search(context, base, { ...words, titles }))).flat(),
      ...(await each(drawn, ({ expects, place }) => darken(browser, at(place), expects))).flat(),
      ...await openMenu(context, base, pages().map((page) => at(address(page))))
    )
    const { length } = [...seen.values()].flatMap(({ links }) => links)
    const summary =
      `${seen.size} pages, ${length} links, ${followed.length} of them followed, ${sought.length} searches, ` +
      `${drawn.length} pages with diagrams, ${Object.keys({ ...controls, ...broken }).length} controls`
    return { problems: problems.map((problem) => problem.replaceAll(base, "/")), summary }
  } finally {
    await browser.close()
    server.close()
  }
}
