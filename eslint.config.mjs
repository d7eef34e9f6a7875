import effectPlugin from "@effect/eslint-plugin"
import markdown from "@eslint/markdown"
import { defineConfig, globalIgnores } from "eslint/config"
import simpleImportSort from "eslint-plugin-simple-import-sort"
import tseslint from "typescript-eslint"
import prose from "./tools/lint/prose.mjs"

const restricted = (selector, message) => ({ selector, message })

/** Code that saves lines and costs a reader time. */
const dense = [
  restricted(
    "SpreadElement > :matches(ArrayExpression, ObjectExpression)",
    "Write the elements of a literal one per line instead of spreading it."
  ),
  restricted(
    "ConditionalExpression > ConditionalExpression.alternate > ConditionalExpression.alternate",
    "Use early returns, a switch or a table."
  ),
  restricted(
    "CallExpression[callee.property.name='split'] > MemberExpression > Literal.object",
    "Write a list as an array."
  )
]

const formatting = [
  "error",
  {
    config: {
      indentWidth: 2,
      // At 95 columns, few lines have more than 90. Long texts are not broken.
      lineWidth: 95,
      semiColons: "asi",
      quoteStyle: "alwaysDouble",
      trailingCommas: "never",
      operatorPosition: "maintain",
      "arrowFunction.useParentheses": "force",
      "module.sortImportDeclarations": "maintain",
      "module.sortExportDeclarations": "maintain"
    }
  }
]

/** Rules for library code. Tests, examples and scripts may use timers, promises and I/O directly. */
const libraryRules = {
  "no-console": "error",
  "no-restricted-globals": [
    "error",
    ...["setTimeout", "setInterval", "setImmediate", "queueMicrotask", "performance", "fetch"]
      .map((name) => ({
        name,
        message: "Use Effect for time and I/O."
      }))
  ],
  "no-restricted-syntax": [
    "error",
    ...dense,
    restricted(
      "TryStatement",
      "Keep errors in the type: Effect.try, Option.liftThrowable, Schema."
    ),
    restricted("ThrowStatement", "Keep errors in the type: Effect.fail."),
    restricted("AwaitExpression", "Use Effect.gen instead of async and await."),
    restricted(":function[async=true]", "Use Effect.gen instead of async and await."),
    restricted("MemberExpression[object.name='Promise']", "Use Effect instead of Promise."),
    restricted("NewExpression[callee.name='Promise']", "Use Effect instead of Promise."),
    restricted(
      "MemberExpression[object.name='Date'][property.name='now']",
      "Use Effect's Clock for time."
    ),
    restricted(
      "MemberExpression[object.name='URL'][property.name='canParse']",
      "On Node 20 and 22 it refuses host names beyond ASCII once it is hot: Option.liftThrowable."
    ),
    restricted("NewExpression[callee.name='Date']", "Use Effect's Clock for time."),
    restricted(
      "MemberExpression[object.name='Math'][property.name='random']",
      "Use Effect's Random."
    ),
    restricted(
      "CallExpression[callee.object.name='Effect'][callee.property.name=/^run(Sync|Promise|Fork|Callback)/]",
      "A library returns effects to its caller."
    )
  ],
  "no-restricted-imports": [
    "error",
    {
      paths: [
        { name: "effect", message: "Import the module: effect/Effect." },
        {
          name: "@effect/platform",
          message: "Import the module: @effect/platform/HttpClient."
        },
        {
          name: "@effect/platform-node",
          message: "Import the module: @effect/platform-node/NodeHttpClient."
        }
      ]
    }
  ]
}

export default defineConfig(
  globalIgnores([
    "**/dist/",
    "**/.tsbuild/",
    "**/node_modules/",
    "coverage/",
    "**/.vitepress/.temp/",
    // They import Effect 4, which only the workspace of that line has.
    "tools/effect4/workspace/",
    "tools/effect4/overlay/",
    "examples/effect4/",
    // Generated from docstrings, which are checked in the sources.
    "docs/reference/api/"
  ]),
  { plugins: { prose }, rules: { "prose/english": "error" } },
  {
    files: ["**/*.md"],
    plugins: { markdown },
    language: "markdown/gfm",
    languageOptions: { frontmatter: "yaml" },
    rules: { "prose/markdown-format": "error" }
  },
  {
    files: ["**/*.ts", "**/*.mjs", "**/*.cjs", "**/*.js"],
    plugins: { "@effect": effectPlugin, "simple-import-sort": simpleImportSort },
    rules: {
      // For comments only, because dprint wraps code.
      "max-len": ["error", { code: 1000, comments: 120, ignoreUrls: true }],
      "simple-import-sort/imports": ["error", {
        groups: [["^\\u0000", "^node:", "^@?\\w", "^\\."]]
      }],
      "@effect/dprint": formatting,
      "no-restricted-syntax": ["error", ...dense],
      "no-duplicate-imports": "error",
      "max-statements-per-line": ["error", { max: 1 }]
    }
  },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    // One program of all sources: a project service would check each package again for those that use it.
    languageOptions: {
      parserOptions: {
        project: "tools/tsconfig.sources.json",
        tsconfigRootDir: import.meta.dirname
      }
    },
    rules: {
      "@typescript-eslint/array-type": ["error", { default: "generic", readonly: "generic" }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/consistent-type-definitions": ["error", "interface"],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-unused-vars": ["error", {
        argsIgnorePattern: "^_",
        varsIgnorePattern: "^_"
      }],
      // An async function may have no await of its own.
      "@typescript-eslint/require-await": "off",
      // Tags are empty classes, and Schema's classes extend an expression.
      "@typescript-eslint/no-extraneous-class": "off",
      // Effect's modules have a type and a namespace of the same name.
      "@typescript-eslint/no-namespace": "off",
      // `Effect.async<void>` needs `void` as a type argument.
      "@typescript-eslint/no-invalid-void-type": "off",
      "@typescript-eslint/no-empty-object-type": ["error", {
        allowInterfaces: "with-single-extends"
      }],
      "@typescript-eslint/no-confusing-void-expression": ["error", {
        ignoreArrowShorthand: true
      }],
      "@typescript-eslint/unified-signatures": "off",
      // Errors of Effect can be yielded, so they are iterable; spreading one copies its fields.
      "@typescript-eslint/no-misused-spread": "off",
      "@typescript-eslint/no-unnecessary-condition": ["error", {
        allowConstantLoopConditions: "only-allowed-literals"
      }]
    }
  },
  { files: ["packages/*/src/**/*.ts"], rules: libraryRules },
  {
    files: ["packages/*/test/**/*.ts", "examples/test/**/*.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        ...dense,
        restricted(
          "MemberExpression[object.name='assert'][property.name=/^deep(Strict)?Equal$/]",
          "deepStrictEqual of @effect/vitest/utils: chai's takes any two Options for equal."
        )
      ]
    }
  },
  {
    files: ["**/*.mjs", "**/*.cjs", "**/*.js"],
    extends: [tseslint.configs.disableTypeChecked]
  },
  // It quotes the phrases.
  { files: ["tools/lint/prose.mjs"], rules: { "prose/english": "off" } },
  // Generated pages and their templates.
  {
    files: [
      "docs/evidence/benchmarks.md",
      "packages/*/CHANGELOG.md"
    ],
    rules: { "prose/markdown-format": "off" }
  }
)
