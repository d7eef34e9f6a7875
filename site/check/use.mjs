/** The site as somebody uses it: follows links, searches, changes colours, opens the menu of a phone. */
import { desktop, listen, phone, settled } from "./page.mjs"

/** A page of its own for `use`, which says what is wrong. */
export const onPage = async (context, url, viewport, use) => {
  const problems = []
  const say = (problem) => problems.push(`${url}: ${problem}`)
  const page = await context.newPage()
  try {
    await page.setViewportSize(viewport)
    listen(page, new URL(url).origin, say)
    await page.goto(url)
    await use(page, say)
  } catch ({ message }) {
    say(`use: ${message.split("\n")[0]}`)
  } finally {
    await page.close()
  }
  return problems
}

/** Clicks a link, which must lead to a page with a heading. */
export const follow = (context, { link, url }) =>
  onPage(context, url, desktop, async (page, say) => {
    await settled(page, {}, say)
    await page.evaluate(
      (link) => [...document.querySelectorAll("a[href]")].find(({ href }) => href === link).click(),
      link
    )
    await page.waitForURL(link)
    await page.waitForFunction(() => document.querySelector("h1, .NotFound") !== null)
    if (await page.locator(".NotFound").count() > 0) say(`link: ${link} leads to nothing`)
  })

const resultsOf = async (page, words) => {
  const results = page.locator(".VPLocalSearchBox .result")
  const none = page.locator(".VPLocalSearchBox .no-results")
  await page.fill(".VPLocalSearchBox input", words)
  // The list is of the words once they are in it, or once it says that nothing has them.
  await page.waitForFunction((words) => {
    const box = document.querySelector(".VPLocalSearchBox")
    return box.querySelector(".no-results")?.textContent.includes(words) || box.querySelector(".result mark") !== null
  }, words)
  if (await none.count() > 0) return []
  return results.evaluateAll((links) => links.map(({ href }) => href.replace(/#.*/, "")))
}

/** Searches for the words; the page with that address has to be among the results, or nothing when there is none. */
export const search = (context, base, words, address) =>
  onPage(context, base, desktop, async (page, say) => {
    await settled(page, {}, say)
    await page.click(".VPNavBarSearch button")
    const found = await resultsOf(page, words)
    if (address === undefined && found.length > 0) say(`search: "${words}" finds ${found.length} pages, and is on none`)
    if (address !== undefined && !found.includes(address)) say(`search: "${words}" does not find ${address}`)
    if (address === undefined || found.length === 0) return
    await page.click(".VPLocalSearchBox .result")
    await page.waitForURL((url) => found.includes(url.href.replace(/#.*/, "")))
  })

/** The switch makes the page dark; its diagrams are drawn anew. */
export const darken = (context, url, diagrams) =>
  onPage(context, url, desktop, async (page, say) => {
    await settled(page, { alive: true, diagrams }, say)
    const ground = () => getComputedStyle(document.body).backgroundColor
    const drawings = () => [...document.querySelectorAll(".diagram > svg")].map(({ id }) => id)
    const [lightGround, lightDrawings] = [await page.evaluate(ground), await page.evaluate(drawings)]
    await page.locator(".VPSwitchAppearance").first().click()
    await page.waitForFunction((light) => getComputedStyle(document.body).backgroundColor !== light, lightGround)
    await page.waitForFunction(
      (light) => [...document.querySelectorAll(".diagram > svg")].every(({ id }) => !light.includes(id)),
      lightDrawings
    )
    const { length } = await page.evaluate(drawings)
    if (length !== diagrams) say(`dark: ${length} of ${diagrams} diagrams are drawn`)
  })

/** On a phone the list of pages is behind a button. */
export const openMenu = (context, url, pages) =>
  onPage(context, url, phone, async (page, say) => {
    await settled(page, {}, say)
    if (await page.locator(".VPSidebar.open").count() > 0) say("menu: the list is there before it is asked for")
    await page.click(".VPLocalNav .menu")
    await page.locator(".VPSidebar.open").waitFor()
    const shown = await page.locator(".VPSidebar a").evaluateAll((links) => links.map(({ href }) => href))
    for (const missing of pages.filter((page) => !shown.includes(page))) say(`menu: ${missing} is not in it`)
  })
