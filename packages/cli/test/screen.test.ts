import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { linesOf } from "./support/screen.js"

describe("what a terminal shows in the end", () => {
  const screens: Record<string, readonly [written: string, shown: ReadonlyArray<string>]> = {
    "lines": ["one\r\n\r\ntwo\r\n", ["one", "", "two"]],
    "a line that is not ended": ["one\r\ntwo", ["one", "two"]],
    "without colours": ["\u001b[31mred\u001b[0m\r\n", ["red"]],
    "what was written over": ["working\rdone   \r\n", ["done"]],
    "half of what was written over": ["working\rdo\r\n", ["dorking"]],
    "not what was erased": ["⠋ working\u001b[2K\u001b[Gdone\r\n", ["done"]],
    "what was not erased": ["⠋ working\r\ndone\r\n", ["⠋ working", "done"]],
    "not the lines that were erased": ["one\r\ntwo\r\nthree\u001b[2A\r\u001b[0Jfour\r\n", ["four"]],
    "what was taken back": ["ab\bc\r\n", ["ac"]]
  }
  for (const [name, [written, shown]] of Object.entries(screens)) {
    it(name, () => {
      deepStrictEqual(linesOf(written), shown)
    })
  }

  it("fails at what it does not know", () => {
    assert.throws(() => linesOf("\u001b[5Xone"))
  })
})
