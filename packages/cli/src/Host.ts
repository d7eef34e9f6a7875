/** The parts of the process that the command uses. Tests replace them. */
import { createRequire } from "node:module"
import { homedir } from "node:os"
import * as Context from "effect/Context"

export type Output = NodeJS.WritableStream & {
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface Service {
  /** Node opens a stream at the first access, so each is accessed only where it is used. */
  readonly process: {
    readonly env: Readonly<Record<string, string | undefined>>
    readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
    readonly stdout: Output
    readonly stderr: Output
    /** With which code the process ends if the reader of its output goes away. */
    exitCode?: number | string | null | undefined
  }
  readonly homedir: () => string
  /** Resolves a path that may be relative to the current folder. */
  readonly pathOf: (path: string) => string
}

export class Host extends Context.Reference<Host>()("@store-api/cli/Host", {
  defaultValue: (): Service => ({ process, homedir, pathOf: (path) => path })
}) {}

/** Whether a person can answer a prompt. CI may have a terminal as well, but nobody types there. */
export const isAttended = ({ process }: Service): boolean =>
  !process.env["CI"] && process.stdin.isTTY === true && process.stderr.isTTY === true

/** Returns the version of this package, also in its bundle. */
export const version = (): string =>
  (createRequire(import.meta.url)("../package.json") as { readonly version: string }).version
