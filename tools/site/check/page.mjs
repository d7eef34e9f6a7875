/** Runs in a page of the site: what it shows, and what is wrong with it. */
export const look = async () => {
  const all = (selector) => [...document.querySelectorAll(selector)]
  const width = (element) => element.getBoundingClientRect().width
  const images = all(".main img")
  await Promise.allSettled(images.map((image) => image.decode()))

  const edge = document.documentElement.clientWidth
  /** The outermost elements that stick out of the page; what is in an element that scrolls can be reached. */
  const wideIn = (element) => {
    if (element.getBoundingClientRect().right > edge + 1) {
      return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ? [element] : []
    }
    return /auto|scroll/.test(getComputedStyle(element).overflowX) ? [] : [...element.children].flatMap(wideIn)
  }
  const scrollWidth = document.documentElement.scrollWidth

  return {
    // The theme puts a space of no width before the link to a heading.
    title: document.querySelector("h1")?.textContent.replace(/\u200B/g, "").trim(),
    diagrams: all(".diagram > svg").length,
    images: images.length,
    problems: [
      ...(document.querySelector("#app")?.__vue_app__ === undefined ? ["script: VitePress does not take over"] : []),
      ...all("pre.diagram, .language-mermaid").map(() => "diagram: not drawn"),
      ...all(".diagram > svg").filter((svg) => width(svg) < 50 || svg.querySelector(".error-icon") !== null)
        .map(({ id }) => `diagram: ${id} shows nothing`),
      ...images.filter((image) => image.naturalWidth === 0 || width(image) === 0)
        .map((image) => `image: ${image.getAttribute("src")} has no width`),
      ...all(".main, .VPNav").flatMap(wideIn).map(({ className, localName, textContent }) =>
        `overflow: <${localName} class="${className}"> at ${edge} pixels: ${textContent.trim().slice(0, 60)}`
      ),
      ...(scrollWidth > edge ? [`overflow: the page is ${scrollWidth} pixels wide at ${edge}`] : [])
    ]
  }
}
