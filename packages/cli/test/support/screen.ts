/** What a terminal shows of the text that is written to it. */
import { Option } from "effect"

/** Text with what a terminal makes colours of, or moves its cursor by. */
export const hasColours = (text: string): boolean => text.includes("\u001b[")

/**
 * What a terminal shows in the end of what came to it: its lines, without what was overwritten or erased. It knows what
 * prompts use of a terminal, and fails at anything else.
 */
export const linesOf = (screen: string): ReadonlyArray<string> => {
  const lines: Array<Array<string>> = [[]]
  let [row, column] = [0, 0]
  const line = () => (lines[row] ??= [])
  const sequences = /\u001b\[(\??[\d;]*)([A-Za-z])|\u0007|[\r\n\b]|[^\u001b\u0007\r\n\b]/gu
  for (const [text, parameter = "", command] of screen.matchAll(sequences)) {
    const count = Math.max(1, Number(parameter))
    if (text === "\r") column = 0
    else if (text === "\n") row++
    else if (text === "\b") column = Math.max(0, column - 1)
    else if (text === "\u0007") continue
    else if (command === undefined) line()[column++] = text
    else if (command === "A") row = Math.max(0, row - count)
    else if (command === "B") row += count
    else if (command === "C") column += count
    else if (command === "D") column = Math.max(0, column - count)
    else if (command === "G") column = count - 1
    else if (command === "K") line().splice(parameter === "2" ? 0 : column)
    else if (command === "J") lines.splice(row, Infinity, line().slice(0, column))
    else if (!["m", "h", "l"].includes(command)) {
      throw new Error(`a terminal is asked for what it does not know: ${text.slice(1)}`)
    }
  }
  // Where nothing was written there is nothing in the arrays either.
  const shown = Array.from(
    lines,
    (cells: ReadonlyArray<string | undefined> | undefined) =>
      Array.from(cells ?? [], (cell) => cell ?? " ").join("").trimEnd()
  )
  return Option.getOrElse(Option.liftPredicate(shown, (lines) => lines.at(-1) !== ""), () => shown.slice(0, -1))
}
