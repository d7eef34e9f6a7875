/** The built site as any static server would give it, on loopback, below its base. */
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { extname, join, normalize, sep } from "node:path"

const types = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

const fileOf = (folder, path) => {
  const file = normalize(join(folder, decodeURIComponent(path)))
  return file.startsWith(`${folder}${sep}`) ? file : undefined
}

/** `others` are files by name beside those of the folder, or in place of them; `undefined` takes one away. */
export const serve = async (folder, base, others = {}) => {
  const contentOf = async (path) => {
    if (!path.startsWith(base)) return undefined
    const name = path.slice(base.length).replace(/(^|\/)$/, "$1index.html")
    if (name in others) return others[name]
    const file = fileOf(folder, name)
    return file === undefined ? undefined : readFile(file).catch(() => undefined)
  }

  const server = createServer(async ({ url }, response) => {
    const { pathname } = new URL(url, "http://127.0.0.1")
    const content = await contentOf(pathname)
    const type = types[extname(pathname)] ?? types[".html"]
    response.writeHead(content === undefined ? 404 : 200, { "content-type": type }).end(content)
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}${base}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
