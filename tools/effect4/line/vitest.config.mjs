import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"

const source = (name) => new URL(`./packages/${name}/src`, import.meta.url).pathname
// As in the workspace: tests of sockets wait more than they compute.
const maxWorkers = availableParallelism() + 2

export default defineConfig({
  test: {
    include: ["packages/**/*.test.ts"],
    // Both are about files of the repository that this line does not have.
    exclude: [...configDefaults.exclude, "**/leaks/sources.test.ts", "**/leaks/standards.test.ts"],
    isolate: false,
    maxWorkers,
    testTimeout: 20_000,
    hookTimeout: 20_000
  },
  resolve: {
    alias: [
      { find: /^@store-api\/(core|platform-node|emulator|redis)$/, replacement: `${source("$1")}/index.ts` },
      { find: /^@store-api\/(core|platform-node|emulator|redis)\/(.+)$/, replacement: `${source("$1")}/$2.ts` }
    ]
  }
})
