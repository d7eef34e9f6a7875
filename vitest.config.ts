import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const source = (name: string) => `${import.meta.dirname}/packages/${name}/src`
/** `npm run dev`, where the first failure matters more than the end of the run. */
const watch = process.argv.includes("watch")

/** The slow files that take longest, the longest first. */
const longest = ["process", "clients", "fleet", "tutorial"]
  .map((name) => `/${name}.slow.test.ts`)

const rank = ({ moduleId }: TestSpecification) => {
  const index = longest.findIndex((name) => moduleId.endsWith(name))
  return index === -1 ? longest.length : index
}

/**
 * On its first run, Vitest starts large files first. These are small, and one that starts last prolongs the run. In
 * watch mode, files that failed start first, and then the shortest.
 */
class Order extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const last = ({ moduleId, project }: TestSpecification) =>
      this.ctx.cache.getFileTestResults(
        `${project.name}:${moduleId.slice(this.ctx.config.root.length + 1)}`
      )
    const duration = (file: TestSpecification) =>
      last(file)?.failed === true ? -1 : last(file)?.duration ?? 0
    return sorted.sort((one, other) =>
      watch ? duration(one) - duration(other) : rank(one) - rank(other)
    )
  }
}

const project = (name: string, include: string, exclude: Array<string> = []) => ({
  extends: true as const,
  test: { name, include: [`{examples,packages,tools}/**/${include}`], exclude }
})

export default defineConfig({
  test: {
    // `npm test` runs the first, `npm run test:all` both.
    projects: [
      project("unit", "*.test.ts", ["**/*.slow.test.ts"]),
      project("slow", "*.slow.test.ts")
    ],
    // The first needs authorization servers (`npm run interop`), the second Effect 4 (`npm run effect4`).
    exclude: [...configDefaults.exclude, "**/interop/**", "tools/effect4/workspace/**"]
      // They are about files of the repository that the packages for Effect 4 do not have.
      .concat(
        process.env["STORE_API_EFFECT4"] === undefined
          ? []
          : "packages/core/test/leaks/sources.test.ts"
      ),
    // Files of a worker share their modules: loading Effect again for each file would take longer than the tests.
    isolate: false,
    setupFiles: "packages/testing/test/leftAsFound.ts",
    // A larger young generation: a tenth of the time went into collecting it.
    poolOptions: { forks: { execArgv: ["--max-semi-space-size=32"] } },
    minWorkers: availableParallelism(),
    maxWorkers: availableParallelism(),
    sequence: { sequencer: Order },
    // A busy machine can be twenty times slower. No test has a limit of its own.
    testTimeout: 600_000,
    hookTimeout: 600_000
  },
  // Tests run on the sources; the built and packed packages have a test of their own.
  resolve: {
    alias: [
      {
        find: /^@store-api\/(core|platform-node|emulator|redis|sql|dpop)$/,
        replacement: `${source("$1")}/index.ts`
      },
      {
        find: /^@store-api\/(core|platform-node|emulator|redis|sql|dpop)\/(.+)$/,
        replacement: `${source("$1")}/$2.ts`
      }
    ]
  }
})
