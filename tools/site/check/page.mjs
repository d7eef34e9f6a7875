/** One page, opened and looked at. What is wrong is told as `kind: what`. */

export const desktop = { width: 1280, height: 900 }
export const phone = { width: 390, height: 844 }

/** Further widths at which nothing may stick out: the layout changes between them. */
const between = [768, 1024, 1440, 1920]

/** How long a page may take to become what it shall be; a busy machine is slow, and nothing waits longer than it must. */
export const patiently = 30_000

/** Tells `say` what the page complains about, and what it asks for. */
export const listen = (page, origin, say) => {
  page.on("console", (message) => {
    if (message.type() === "error") say(`console: ${message.text()}`)
  })
  page.on("pageerror", ({ message }) => say(`exception: ${message}`))
  page.on("request", (request) => {
    const url = request.url()
    if (/^(https?|wss?):/.test(url) && new URL(url).origin !== origin) say(`foreign: ${url}`)
  })
  page.on("response", (response) => {
    if (response.status() >= 400) say(`failed: ${response.status()} of ${response.url()}`)
  })
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText
    // The page was left before a prefetched neighbour came.
    if (reason !== "net::ERR_ABORTED") say(`failed: ${reason} of ${request.url()}`)
  })
}

export const isReached = (promise) => promise.then(() => true, () => false)

/** Until VitePress has taken over the page, and all images and diagrams are there or never will be. */
export const settled = async (page, { alive = true, diagrams, patience = patiently }, say) => {
  if (alive) {
    const mounted = page.waitForFunction(
      () => document.querySelector("#app")?.__vue_app__ !== undefined,
      undefined,
      { timeout: patience }
    )
    if (!await isReached(mounted)) say("script: the page was never brought to life")
  }
  const areDrawn = (count) => document.querySelectorAll(".diagram > svg").length === count
  if (alive && diagrams !== undefined) await isReached(page.waitForFunction(areDrawn, diagrams, { timeout: patience }))
  if (diagrams !== undefined && !await page.evaluate(areDrawn, diagrams)) {
    say(`diagram: not all of ${diagrams} are drawn, or more`)
  }
  await page.evaluate(() => Promise.allSettled([...document.images].map((image) => image.decode())))
}

/** What a page calls itself; the theme puts a space of no width before the link to it. */
export const heading = () => document.querySelector("h1")?.textContent.replace(/\u200B/g, "").trim()

const diagramProblems = () =>
  [...document.querySelectorAll(".diagram > svg")]
    .filter((svg) => svg.getBoundingClientRect().width < 50 || svg.querySelector(".error-icon") !== null)
    .map((svg) => `diagram: ${svg.id} shows nothing`)

const imageProblems = () =>
  [...document.images]
    .filter((image) => image.naturalWidth === 0 || image.getBoundingClientRect().width === 0)
    .map((image) => `image: ${image.getAttribute("src")} has no width`)

/** What can only be read by moving the whole page sideways, or not at all. */
const overflowProblems = () => {
  const width = document.documentElement.clientWidth
  const scrolls = (element) =>
    element !== null && element !== document.body && element !== document.documentElement &&
    (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement))
  const isHidden = (element) => !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const wide = [...document.querySelectorAll("main *, .main *, .VPNav *")].filter((element) =>
    element.getBoundingClientRect().right > width + 1 && !scrolls(element) && !isHidden(element)
  )
  const found = wide.slice(0, 1).map((element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 60)
    return `overflow: <${element.localName} class="${element.className}"> at ${width} pixels: ${text}`
  })
  const moves = document.documentElement.scrollWidth > width
  return moves && found.length === 0 ? [`overflow: the page is ${document.documentElement.scrollWidth} wide`] : found
}

/** Opens a page and answers what is wrong with it, its links and the names that links can lead to. */
export const inspect = async (context, url, expects = {}) => {
  const { alive, diagrams = 0, images = 0, patience, title } = expects
  const problems = []
  const say = (problem) => problems.push(problem)
  const page = await context.newPage()
  try {
    await page.setViewportSize(desktop)
    listen(page, new URL(url).origin, say)
    await page.goto(url, { timeout: patiently })
    await settled(page, { alive, diagrams, patience }, say)
    const shown = await page.evaluate(() => ({
      images: document.querySelectorAll("main img, .main img").length,
      links: [...new Set([...document.querySelectorAll("a[href]")].map(({ href }) => href))],
      names: [...document.querySelectorAll("[id]")].map(({ id }) => id)
    }))
    const shownTitle = await page.evaluate(heading)
    if (title !== undefined && shownTitle !== title) say(`title: "${shownTitle}" in place of "${title}"`)
    if (shown.images < images) say(`image: ${shown.images} of ${images} are shown`)
    problems.push(...await page.evaluate(imageProblems), ...await page.evaluate(diagramProblems))
    for (const width of [phone.width, ...between]) {
      await page.setViewportSize({ ...phone, width })
      problems.push(...await page.evaluate(overflowProblems))
    }
    return { problems, ...shown }
  } finally {
    await page.close()
  }
}
