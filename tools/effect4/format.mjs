/** Formats generated sources with the formatter that ESLint runs on ours. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { createFromBuffer } from "@dprint/formatter"
import configs from "../../eslint.config.mjs"

const eslintPlugin = createRequire(createRequire(import.meta.url).resolve("@effect/eslint-plugin"))
const dprint = createFromBuffer(readFileSync(eslintPlugin("@dprint/typescript").getPath()))
const [{ config }] = configs.flatMap(({ rules }) => rules?.["@effect/dprint"]?.slice(1) ?? [])
dprint.setConfig({}, config)

const formatted = (fileText, overrideConfig = {}) =>
  dprint.formatText({ filePath: "generated.ts", fileText, overrideConfig })

/** Formats a source, and the code in its doc comments. */
export const format = (text) =>
  formatted(text.replace(/^ \* ```ts\n([\s\S]*?)^ \* ```$/gm, (_, block) => {
    const code = formatted(block.replaceAll(/^ \* ?/gm, ""), { lineWidth: config.lineWidth - " * ".length })
    return [" * ```ts", ...code.trimEnd().split("\n").map((row) => ` * ${row}`.trimEnd()), " * ```"].join("\n")
  }))
