/** Every link of every page: to a page or file that is there, and to a name on it. */

/** The address of the page that a link leads to. */
export const withoutHash = (url) => {
  const { origin, pathname } = new URL(url)
  return origin + pathname.replace(/\/index\.html$/, "/")
}

const hashOf = (url) => decodeURIComponent(new URL(url).hash.slice(1))

/** A link is the site's own business when it stays on its server. */
const isOwn = (link, base) => new URL(link).origin === new URL(base).origin

/** `seen` has what `inspect` answered for each address; what is not in it is asked for. */
export const linkProblems = async (seen, base) => {
  const statuses = new Map()
  const statusOf = async (url) => {
    if (seen.has(url)) return 200
    if (!statuses.has(url)) statuses.set(url, await fetch(url).then(({ status }) => status))
    return statuses.get(url)
  }

  const problemOf = async (link) => {
    if (!isOwn(link, base)) return link.startsWith("https:") ? [] : [`link: ${link} is no https`]
    const target = withoutHash(link)
    const status = await statusOf(target)
    if (status !== 200) return [`link: ${link} is answered with ${status}`]
    const name = hashOf(link)
    if (name === "" || seen.get(target)?.names.includes(name)) return []
    return [`anchor: ${link} is on no element`]
  }

  const problems = []
  for (const [url, { links }] of seen) {
    for (const link of links) problems.push(...(await problemOf(link)).map((problem) => `${url}: ${problem}`))
  }
  return problems
}

/** For each address that is linked to within the site, a page that has the link: not the page itself. */
export const linkedFrom = (seen, base) => {
  const found = new Map()
  for (const [url, { links }] of seen) {
    for (const link of links.filter((link) => link.startsWith(base))) {
      const target = withoutHash(link)
      if (target !== url && !found.has(target)) found.set(target, { url, link })
    }
  }
  return found
}
