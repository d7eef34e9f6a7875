/**
 * The house: a module of core imports only from the floors below it, nothing imports in a circle,
 * and core knows neither Node nor the other packages.
 */
const floors = [
  ["AccessTokenError", "AccessTokenMetrics", "TokenPolicy"],
  [
    "AccessToken",
    "ClientCredentials",
    "TokenResponse",
    "internal/baseUrl",
    "internal/boundedBody",
    "internal/challenge",
    "internal/hiddenHeader",
    "internal/manualRedirect",
    "internal/retryAfter",
    "internal/sanitise",
    "internal/transportError",
    "internal/trustedOrigins"
  ],
  [
    "TokenSource",
    "TokenStore",
    "internal/flightRuntime",
    "internal/headerValue",
    "internal/heldToken",
    "internal/measure",
    "internal/seal",
    "internal/storedToken",
    "internal/tokenState"
  ],
  ["TokenEndpoint", "SharedTokenSource", "AccessTokenProvider", "internal/reliableStore"],
  ["AuthorizedHttpClient"],
  ["StoreAuth"],
  ["index"]
]

const modules = (names) => `^packages/core/src/(${names.join("|")})[.]ts$`
const internals = (names) => names.filter((name) => name.startsWith("internal/"))

const floorRules = floors.map((names, index) => ({
  name: `floor-${index + 1}-imports-from-below`,
  severity: "error",
  comment: `${names.join(", ")}: only from the floors below, and a floor's own internals`,
  from: { path: modules(names) },
  to: {
    path: "^packages/core/src/",
    pathNot: [...floors.slice(0, index), internals(names)].filter((names) => names.length > 0).map(modules)
  }
}))

module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "every-module-has-a-floor",
      severity: "error",
      from: { path: "^packages/core/src/", pathNot: floors.map(modules) },
      to: {}
    },
    ...floorRules,
    {
      name: "core-knows-no-node",
      severity: "error",
      from: { path: "^packages/core/src/" },
      to: { dependencyTypes: ["core"] }
    },
    {
      name: "core-has-two-peers",
      severity: "error",
      from: { path: "^packages/core/src/" },
      to: { pathNot: ["^packages/core/src/", "node_modules/effect/", "node_modules/@effect/platform/"] }
    },
    {
      name: "emulator-stands-alone",
      severity: "error",
      from: { path: "^packages/emulator/src/" },
      to: { path: "(^|/)packages/|@store-api/", pathNot: "^packages/emulator/src/" }
    },
    {
      name: "platform-node-stands-on-core",
      severity: "error",
      from: { path: "^packages/platform-node/src/" },
      to: { path: "(^|/)packages/|@store-api/", pathNot: "^packages/platform-node/src/|(^|/)packages/core/dist/" }
    },
    {
      name: "redis-stands-on-core",
      severity: "error",
      from: { path: "^packages/redis/src/" },
      to: { path: "(^|/)packages/|@store-api/", pathNot: "^packages/redis/src/|(^|/)packages/core/dist/" }
    },
    {
      name: "cli-stands-on-three",
      severity: "error",
      comment: "core, platform-node and the emulator",
      from: { path: "^packages/cli/src/" },
      to: {
        path: "(^|/)packages/|@store-api/",
        pathNot: "^packages/cli/src/|(^|/)packages/(core|platform-node|emulator)/dist/"
      }
    },
    {
      name: "nobody-imports-cli",
      severity: "error",
      from: { path: "^packages/", pathNot: "^packages/cli/" },
      to: { path: "(^|/)packages/cli/|@store-api/cli" }
    },
    {
      name: "sources-import-no-tests",
      severity: "error",
      from: { path: "^packages/[^/]+/src/" },
      to: { path: "/test/" }
    }
  ],
  options: {
    // Built packages are seen where they are imported, and not looked into.
    doNotFollow: { path: "node_modules|/dist/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.base.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["types", "import", "default"] }
  }
}
