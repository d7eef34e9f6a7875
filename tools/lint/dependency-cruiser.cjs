/** The rules on imports: modules import only from lower layers, and packages only from the packages listed here. */
const layers = [
  "AccessTokenError AccessTokenMetrics internal/(advice|waitAtMost|withMessage|lifetime)",
  "AccessToken ClientCredentials TokenResponse " +
  "internal/(asyncContext|backoff|baseUrl|boundedBody|configOf|credentials|extra|httpErrors|instant|manualRedirect|options|userAgent)",
  "TokenRequest TokenSource TokenStore internal/repeatedToken internal/client/[^/]+",
  "TokenEndpoint SharedTokenSource TokenStoreContract AccessTokenProvider internal/(endpoint|provider|sharing)/[^/]+",
  "AuthorizedHttpClient",
  "StoreAuth",
  "index"
].map((names) => names.split(" "))

/** The public modules that each part of core consists of. Nothing else imports the internals of a part. */
const parts = {
  provider: ["AccessTokenProvider"],
  endpoint: ["TokenEndpoint"],
  client: ["AuthorizedHttpClient", "StoreAuth"],
  sharing: ["SharedTokenSource"]
}

/** The packages that each package may import. */
const packages = {
  core: [],
  "platform-node": ["core"],
  redis: ["core"],
  sql: ["core"],
  dpop: ["core"],
  emulator: [],
  cli: ["core", "platform-node", "emulator"]
}

const sources = (...names) => `^packages/(${names.join("|")})/src/`
const modules = (names) => `${sources("core")}(${names.join("|")})[.]ts$`
const internals = (names) => names.filter((name) => name.startsWith("internal/"))

const rule = (name, from, to) => ({ name, severity: "error", from, to })

module.exports = {
  forbidden: [
    rule("no-circular", {}, { circular: true }),
    {
      ...rule("no-circle-of-tools", { path: "^tools/" }, { circular: true }),
      scope: "folder"
    },
    rule(
      "every-module-has-a-layer",
      { path: sources("core"), pathNot: layers.map(modules) },
      {}
    ),
    // A module may also import the internal modules of its own layer.
    ...layers.map((names, index) =>
      rule(`layer-${index + 1}-imports-from-below`, { path: modules(names) }, {
        path: sources("core"),
        pathNot: [...layers.slice(0, index), internals(names)].filter((names) =>
          names.length > 0
        ).map(modules)
      })
    ),
    ...Object.entries(parts).map(([part, names]) =>
      rule(`internals-of-${part}`, {
        path: sources("core"),
        pathNot: modules([...names, `internal/${part}/[^/]+`])
      }, {
        path: `${sources("core")}internal/${part}/`
      })
    ),
    rule("core-imports-no-node", { path: sources("core") }, { dependencyTypes: ["core"] }),
    rule("core-imports-two-peers", { path: sources("core") }, {
      pathNot: [sources("core"), "node_modules/effect/", "node_modules/@effect/platform/"]
    }),
    ...Object.entries(packages).map(([name, below]) =>
      rule(`${name}-imports-from-below`, { path: sources(name) }, {
        path: "(^|/)packages/|@store-api/",
        pathNot: sources(name, ...below)
      })
    ),
    rule("other-packages-by-name", { path: "^(packages/[^/]+|examples)/" }, {
      path: "^packages/",
      pathNot: "^$1/",
      dependencyTypesNot: ["aliased-tsconfig-paths"]
    }),
    rule("other-packages-without-internals", { path: "^packages/([^/]+)/src/" }, {
      path: "^packages/[^/]+/src/internal/",
      pathNot: "^packages/$1/"
    }),
    rule("sources-import-no-tests", { path: "^packages/[^/]+/src/" }, { path: "/test/" }),
    rule("packages-and-examples-import-no-tools", { path: "^(packages|examples)/" }, {
      path: "^tools/"
    })
  ],
  options: {
    doNotFollow: { path: "node_modules|/dist/|^tools/effect4/workspace/packages" },
    // Compiled files, of which some belong to sources that are gone, and those of a site that is being built.
    exclude: { path: "/\\.tsbuild/|/\\.vitepress/\\.temp/" },
    tsPreCompilationDeps: true,
    // Resolves the packages to their sources, without a build. The path must be absolute.
    tsConfig: { fileName: `${__dirname}/../tsconfig.sources.json` },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["types", "import", "default"]
    }
  }
}
