/**
 * The packages as users of Effect 3 get them with npm, and their command line. Needs `npm run build`. `npm run effect4`
 * does the same for Effect 4, and with pnpm.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { consumer, installers, run, runProgram, startEmulator, stop } from "./consumer.mjs"
import { pack } from "./packages.mjs"

const work = mkdtempSync(join(tmpdir(), "packages-"))
afterAll(() => {
  stop()
  rmSync(work, { recursive: true, force: true })
})

it(
  "the packed packages install, compile, import and run outside the workspace, and their command line prints one token",
  async () => {
    const packages = pack(work)
    const names = packages.map(({ name }) => name.replace("@store-api/", ""))
    assert.sameMembers(names, [
      "core",
      "platform-node",
      "emulator",
      "redis",
      "sql",
      "dpop",
      "cli"
    ])
    // A dependency is published before the packages that need it.
    assert.isBelow(names.indexOf("core"), names.indexOf("redis"))

    const node = process.execPath
    const folder = await consumer(join(work, "npm"), {
      installer: "npm",
      major: 3,
      node,
      packages
    })
    const service = await startEmulator(folder)
    const output = await runProgram(folder, node, service)
    assert.notInclude(output, service["STORE_API_CLIENT_SECRET"] ?? "?")

    // A command alone is one package of at most 3 MB. The library in the emulator's package needs `jose`.
    const besides: Readonly<Record<string, ReadonlyArray<string>>> = {
      "@store-api/emulator": ["node_modules/jose"]
    }
    for (
      const { files, name, tarball } of packages.filter(({ name }) =>
        /cli|emulator/.test(name)
      )
    ) {
      const alone = join(work, name)
      mkdirSync(alone, { recursive: true })
      await run(alone, "npm", installers.npm([tarball, "--prefix", "."]))
      const lock = readFileSync(join(alone, "node_modules", ".package-lock.json"), "utf8")
      assert.hasAllKeys((JSON.parse(lock) as { packages: object }).packages, [
        `node_modules/${name}`,
        ...(besides[name] ?? [])
      ])
      assert.isBelow([...files.values()].join("").length, 3e6)
    }

    const command = join(work, "@store-api/cli", "node_modules", ".bin", "store-api")
    const token = () =>
      run(folder, command, ["token"], {
        ...service,
        STORE_API_TOKEN_FOLDER: join(work, "tokens")
      })
    const first = await token()
    assert.match(first, /^[\w+/=.~-]{20,}$/)
    assert.strictEqual(await token(), first)
  },
  300_000
)
