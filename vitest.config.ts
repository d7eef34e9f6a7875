import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const source = (name: string) => new URL(`./packages/${name}/src`, import.meta.url).pathname
/** Tests with sockets mostly wait, so two workers more than there are cores shorten the run by a third. */
const workers = availableParallelism() + 2

/** The files that take longest, without ".slow.test.ts". */
const long = ["AccessTokenProvider", "AccessTokenProviderProcess", "alerts", "clients", "fleet", "packages", "process"]
  .concat("programs", "scenarios", "shells", "topologies", "tutorial")

const isLong = ({ moduleId }: TestSpecification) =>
  moduleId.endsWith("/undici.test.ts") || long.some((name) => moduleId.endsWith(`/${name}.slow.test.ts`))

/** On its first run, Vitest starts large files first. The files that take longest are small. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    return sorted.sort((one, other) => Number(isLong(other)) - Number(isLong(one)))
  }
}

export default defineConfig({
  test: {
    include: ["{examples,packages,tools}/**/*.test.ts"],
    // The first needs authorization servers (`npm run interop`), the second Effect 4 (`npm run effect4`).
    exclude: [...configDefaults.exclude, "**/interop/**", "tools/effect4/line/**"],
    // Files of a worker share their modules: loading Effect again for each file would take longer than the tests.
    isolate: false,
    minWorkers: workers,
    maxWorkers: workers,
    sequence: { sequencer: LongestFirst },
    testTimeout: 20_000,
    hookTimeout: 20_000
  },
  // Tests run on the sources; the built and packed packages have a test of their own.
  resolve: {
    alias: [
      { find: /^@store-api\/(core|platform-node|emulator|redis)$/, replacement: `${source("$1")}/index.ts` },
      { find: /^@store-api\/(core|platform-node|emulator|redis)\/(.+)$/, replacement: `${source("$1")}/$2.ts` }
    ]
  }
})
