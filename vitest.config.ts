import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"

const source = (name: string) => new URL(`./packages/${name}/src`, import.meta.url).pathname
const workers = Math.max(2, availableParallelism() - 1)

export default defineConfig({
  test: {
    include: ["{examples,packages,tools}/**/*.test.ts"],
    // Needs authorization servers: `npm run interop`.
    exclude: [...configDefaults.exclude, "tools/interop/**"],
    // A worker keeps the modules that it has loaded: loading Effect anew for each file would cost more than the tests.
    isolate: false,
    // Tests of sockets wait: on two cores, two workers are faster than one.
    minWorkers: workers,
    maxWorkers: workers,
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
