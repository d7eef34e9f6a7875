/** What a run uses of its process. Tests run the command with their own. */
import { homedir } from "node:os"
import type * as Terminal from "@effect/platform/Terminal"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

export interface Service {
  /** Its streams are read when they are needed: Node opens each at the first access. */
  readonly process: {
    readonly env: Readonly<Record<string, string | undefined>>
    readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
    readonly stdout: Output
    readonly stderr: Output
  }
  readonly homedir: () => string
  /** Where a path leads that may be relative to the current folder. */
  readonly pathOf: (path: string) => string
  /** The keys that are pressed. The terminal is loaded when it is used. */
  readonly terminal: Layer.Layer<Terminal.Terminal>
}

export class Host extends Context.Reference<Host>()("@store-api/cli/Host", {
  defaultValue: (): Service => ({
    process,
    homedir,
    pathOf: (path) => path,
    terminal: Layer.unwrapEffect(
      Effect.map(Effect.promise(() => import("@effect/platform-node/NodeTerminal")), ({ layer }) => layer)
    )
  })
}) {}
