import { defineConfig } from "vitest/config"

const source = (name: string) => `${import.meta.dirname}/../../packages/${name}/src`

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Most of the time, the tests wait.
    maxConcurrency: 3
  },
  // Like the other tests, on the sources.
  resolve: {
    alias: [
      {
        find: /^@store-api\/(core|platform-node|dpop)$/,
        replacement: `${source("$1")}/index.ts`
      },
      {
        find: /^@store-api\/(core|platform-node|dpop)\/(.+)$/,
        replacement: `${source("$1")}/$2.ts`
      }
    ]
  }
})
