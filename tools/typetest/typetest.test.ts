/** Each value of the public API has a type test. An addition also changes docs/reference/api. */
import { assert, it } from "vitest"
import { filesOf, read, sourceOf } from "../support/pages.js"

it.each(filesOf("packages/*/src/index.ts"))("every value that %s exports has a type test", (index) => {
  const values = [...read(index).matchAll(/^export \* as (\w+) from "\.\/(.+)\.js"$/gm)].flatMap(
    ([, module = "", path = ""]) => {
      const source = sourceOf(index.replace("index", path))
      const declared = source.matchAll(/^export (?:declare )?(?:abstract )?(?:class|const|function) (\w+)/gm)
      const reexported = source.matchAll(/^export \{([^}]+)\}/gm)
      const names = [...declared, ...reexported].flatMap(([, list = ""]) => list.split(","))
      return names.map((name) => name.replace(/^.* as /s, "").trim()).filter((name) => name !== "")
        .filter((name) => !name.startsWith("type ")).map((name) => `${module}.${name}`)
    }
  )
  assert.isAbove(values.length, 3)
  const tests = filesOf(index.replace("src/index.ts", "typetest/*.tst.ts")).map(read).join("\n")
  assert.deepStrictEqual(values.filter((value) => !new RegExp(`\\bexpect\\(\\s*${value}[(<)]`).test(tests)), [])
})
