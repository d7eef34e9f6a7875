import { readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"

/** The `repository` field of packages that are released from a repository on GitHub. */
export const repositoryOf = (name) => {
  if (!/^[\w.-]+\/[\w.-]+$/.test(name)) throw new Error(`A repository is given as owner/name, not as ${name}`)
  return { type: "git", url: `git+https://github.com/${name}.git` }
}

/** Does something while a package names its repository, which its sources, which may be forked and moved, do not. */
export const namingRepository = (folder, repository, action) => {
  const path = join(folder, "package.json")
  const text = readFileSync(path, "utf8")
  const named = { ...JSON.parse(text), repository: { ...repository, directory: `packages/${basename(folder)}` } }
  writeFileSync(path, `${JSON.stringify(named, null, 2)}\n`)
  try {
    return action()
  } finally {
    writeFileSync(path, text)
  }
}
