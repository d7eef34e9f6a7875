import { defineConfig } from "vitest/config"

const source = (name: string) => new URL(`../../packages/${name}/src`, import.meta.url).pathname

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Published figures are measured with one server at a time.
    fileParallelism: process.env["INTEROP_WRITE"] !== "true",
    maxWorkers: 3,
    minWorkers: 1
  },
  // Like the other tests, on the sources.
  resolve: {
    alias: [
      { find: /^@store-api\/(core|platform-node)$/, replacement: `${source("$1")}/index.ts` },
      { find: /^@store-api\/(core|platform-node)\/(.+)$/, replacement: `${source("$1")}/$2.ts` }
    ]
  }
})
