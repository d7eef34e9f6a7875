/** Tables for the terminal and for Markdown, and the verdict on a figure. */
export type Table = ReadonlyArray<ReadonlyArray<string>>

/** One row of the table of goals. */
export interface Goal {
  readonly what: string
  readonly goal: string
  readonly limit: string
  readonly measured: string
  readonly verdict: string
}

export const verdict = (value: number, goal: number, limit: number): string =>
  value <= goal ? "met" : value <= limit ? "goal missed, within the limit" : "LIMIT MISSED"

/** The worst of several verdicts. */
export const worst = (verdicts: ReadonlyArray<string>): string =>
  verdicts.find((one) => one.startsWith("LIMIT")) ?? verdicts.find((one) => one !== "met") ?? "met"

export const number = (value: number, digits = 0): string =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", " ")

export const markdown = ([head = [], ...rows]: Table): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

export const plain = (table: Table): string => {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length)))
  return table
    .map((row) => row.map((cell, column) => cell.replaceAll("`", "").padEnd(widths[column] ?? 0)).join("  ").trimEnd())
    .join("\n")
}
