import { defineConfig } from "vitest/config"

const source = (name: string) => new URL(`./packages/${name}/src`, import.meta.url).pathname

export default defineConfig({
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "benchmarks/test/**/*.test.ts",
      "examples/test/**/*.test.ts",
      "test/**/*.test.ts"
    ],
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
