/**
 * Bundles the commands of packages into one file each, so that a command is installed without dependencies:
 *
 *   node tools/workspace/bundle.mjs FOLDER…
 *
 * `npm run build` does this for all packages. A folder without a compiled command is left out.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { build } from "esbuild"

/** Licences that allow redistribution with their text. */
const allowed = ["Apache-2.0", "ISC", "MIT"]

/** The licences of the packages that own these files. Throws if one has none, or one that is not allowed. */
const licencesOf = (files) => {
  const owners = new Set(
    files.flatMap((file) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [])
  )
  return [...owners].sort().map((owner) => {
    const { license, name, version } = JSON.parse(
      readFileSync(join(owner, "package.json"), "utf8")
    )
    const file = readdirSync(owner).find((file) => /^licen[cs]e(\.(md|txt))?$/i.test(file))
    if (!allowed.includes(license) || file === undefined) {
      throw new Error(`${name} may not be bundled: ${license}`)
    }
    return `${name} ${version}, ${license}\n\n${
      readFileSync(join(owner, file), "utf8").trim()
    }\n`
  }).join(`\n${"-".repeat(80)}\n\n`)
}

/** The compiled entries of commands in a folder, and the packages that publish them. */
const entries = { "bin.js": ".", "emulatorBin.js": "../emulator" }

/** The page of the emulator, which its module reads from a file. */
const page = {
  name: "page",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]dist[\\/]internal[\\/]page\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(
        /readFileSync\(new URL\("(.*)", import\.meta\.url\), "utf8"\)/,
        (_, file) => JSON.stringify(readFileSync(join(dirname(path), file), "utf8"))
      )
    }))
}

for (const folder of process.argv.slice(2).map((folder) => resolve(folder))) {
  for (
    const [entry, owner] of Object.entries(entries).filter(([entry]) =>
      existsSync(join(folder, "dist", entry))
    )
  ) {
    const [name] = Object.keys(
      JSON.parse(readFileSync(join(folder, owner, "package.json"), "utf8")).bin
    )
    const outfile = join(folder, owner, "dist", `${name}.mjs`)
    const { metafile } = await build({
      entryPoints: [join(folder, "dist", entry)],
      outfile,
      bundle: true,
      minify: true,
      metafile: true,
      format: "esm",
      platform: "node",
      target: "node20.19",
      legalComments: "none",
      logLevel: "warning",
      plugins: [page],
      // For the modules that are CommonJS.
      banner: {
        js:
          "import{createRequire as requireOf}from\"node:module\";const require=requireOf(import.meta.url);"
      }
    })
    const files = Object.keys(metafile.inputs).map((file) => resolve(file))
    writeFileSync(outfile.replace(/mjs$/, "third-party.txt"), licencesOf(files))
  }
}
