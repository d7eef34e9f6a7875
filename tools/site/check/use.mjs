/** The site as somebody uses it: follows links, searches, changes colours, opens the menu of a phone. */
import { withoutHash } from "./links.mjs"
import { desktop, heading, isReached, listen, patiently, phone, settled } from "./page.mjs"

/** A page of its own for `use`, which says what is wrong. A browser opens it in a context of its own too. */
const onPage = async (context, url, viewport, use) => {
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

/**
 * Clicks, and says what is wrong with the page that comes. The address is that of the link at once, and the page that is left
 * stays until the other is there: only when its heading is gone can the other be judged.
 */
const goTo = async (page, { click, link, patience, title }, say) => {
  await page.evaluate(() => document.querySelector("h1").toggleAttribute("data-left", true))
  await click()
  const isThere = () => document.querySelector("h1")?.hasAttribute("data-left") === false
  if (!await isReached(page.waitForFunction(isThere, undefined, { timeout: patience }))) {
    return say(`link: ${link} shows no page`)
  }
  const shown = await page.evaluate(heading)
  const { isLost, url } = await page.evaluate(() => ({
    isLost: document.querySelector(".NotFound") !== null,
    url: location.href
  }))
  if (isLost) say(`link: ${link} leads to nothing`)
  else if (shown !== title || url !== link) say(`link: ${link} leads to "${shown}", ${url}`)
}

/** Clicks a link, which must lead to the page with that title. */
export const follow = (context, { link, patience = patiently, title, url }) =>
  onPage(context, url, desktop, async (page, say) => {
    await settled(page, {}, say)
    const click = () =>
      page.evaluate((link) => [...document.querySelectorAll("a[href]")].find(({ href }) => href === link).click(), link)
    await goTo(page, { click, link, patience, title }, say)
  })

const resultsOf = async (page, words) => {
  const results = page.locator(".VPLocalSearchBox .result")
  await page.fill(".VPLocalSearchBox input", words)
  // Nothing was sought before: what is listed is of these words.
  await page.waitForFunction((words) => {
    const box = document.querySelector(".VPLocalSearchBox")
    return box.querySelector(".no-results")?.textContent.includes(words) || box.querySelector(".result") !== null
  }, words)
  return results.evaluateAll((links) => links.map(({ href }) => href))
}

/**
 * Searches for the words; the page with that address has to be among the results, or nothing when there is none. The first
 * result must lead to its page, by the titles.
 */
export const search = (context, base, { address, titles, words }) =>
  onPage(context, base, desktop, async (page, say) => {
    await settled(page, {}, say)
    await page.click(".VPNavBarSearch button")
    const found = await resultsOf(page, words)
    if (address === undefined && found.length > 0) say(`search: "${words}" finds ${found.length} pages, and is on none`)
    if (address !== undefined && !found.map(withoutHash).includes(address)) {
      say(`search: "${words}" does not find ${address}`)
    }
    const [link] = found
    if (address === undefined || link === undefined) return
    const click = () => page.click(".VPLocalSearchBox .result")
    if (withoutHash(link) === base) {
      // It is open already.
      await click()
      await page.waitForURL(link)
    } else await goTo(page, { click, link, patience: patiently, title: titles.get(withoutHash(link)) }, say)
  })

/**
 * The switch makes the page dark; its diagrams are drawn anew, for which they have `patience`. It would also make dark what
 * else is open in the same context: hence a browser, not a context.
 */
export const darken = (browser, url, { diagrams, patience = patiently }) =>
  onPage(browser, url, desktop, async (page, say) => {
    await settled(page, { alive: true, diagrams }, say)
    const ground = () => getComputedStyle(document.body).backgroundColor
    const drawings = () => [...document.querySelectorAll(".diagram > svg")].map(({ id }) => id)
    const [lightGround, lightDrawings] = [await page.evaluate(ground), await page.evaluate(drawings)]
    await page.locator(".VPSwitchAppearance").first().click()
    await page.waitForFunction((light) => getComputedStyle(document.body).backgroundColor !== light, lightGround)
    const areNew = page.waitForFunction(
      (light) => [...document.querySelectorAll(".diagram > svg")].every(({ id }) => !light.includes(id)),
      lightDrawings,
      { timeout: patience }
    )
    if (!await isReached(areNew)) return say("dark: not all diagrams are drawn anew")
    const { length } = await page.evaluate(drawings)
    if (length !== diagrams) say(`dark: ${length} of ${diagrams} diagrams are drawn`)
  })

/** On a phone the list of pages is behind a button. */
export const openMenu = (context, url, pages) =>
  onPage(context, url, phone, async (page, say) => {
    await settled(page, {}, say)
    // It would lie over the button.
    if (await page.locator(".VPSidebar.open").count() > 0) return say("menu: the list is there before it is asked for")
    await page.click(".VPLocalNav .menu")
    await page.locator(".VPSidebar.open").waitFor()
    const shown = await page.locator(".VPSidebar a").evaluateAll((links) => links.map(({ href }) => href))
    for (const missing of pages.filter((page) => !shown.includes(page))) say(`menu: ${missing} is not in it`)
  })
