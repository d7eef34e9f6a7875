/**
 * Bundles of programs for child processes, and child processes that perform orders: the parent's side of the
 * conversation. The child's side is `serve.ts`.
 */
import { type ChildProcess as NodeChildProcess, fork } from "node:child_process"
import { basename, extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, type Scope } from "effect"
import { build } from "esbuild"
import { newFolder } from "./loopback.js"
import type { Reply } from "./serve.js"

/** The child failed to perform an order; `tag` is the tag of its error. */
export class ChildError extends Data.TaggedError("ChildError")<{ readonly tag: string }> {
  override get message() {
    return this.tag
  }
}

export interface ChildProcess {
  /** Sends an order and waits for its result. A process that ends before it replies is a defect. */
  readonly ask: (order: unknown) => Effect.Effect<unknown, ChildError>
  /** Sends SIGKILL and waits for the end of the process. */
  readonly kill: Effect.Effect<void>
}

const hasEnded = (child: NodeChildProcess) =>
  child.exitCode !== null || child.signalCode !== null

/** Starts a process that runs this file, and kills it when the scope closes. */
export const start = (
  file: string,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.gen(function*() {
    const waiting = new Map<number, (result: Effect.Effect<unknown, ChildError>) => void>()
    const child = yield* Effect.sync(() =>
      fork(file, {
        execArgv: [],
        env: { ...process.env, NODE_OPTIONS: "", ...variables },
        stdio: "inherit"
      })
        .on("message", ({ error, id, value }: Reply) => {
          waiting.get(id)?.(
            error === undefined
              ? Effect.succeed(value)
              : Effect.fail(new ChildError({ tag: error }))
          )
          waiting.delete(id)
        })
        .once("exit", (code, signal) => {
          for (const resume of waiting.values()) {
            resume(Effect.dieMessage(`the process ended: ${signal ?? code}`))
          }
          waiting.clear()
        })
    )
    const kill = Effect.async<void>((resume) => {
      if (hasEnded(child)) {
        resume(Effect.void)
        return
      }
      child.once("exit", () => resume(Effect.void))
      child.kill("SIGKILL")
    })
    yield* Effect.addFinalizer(() => kill)
    let last = 0
    return {
      kill,
      ask: (order: unknown) =>
        Effect.async<unknown, ChildError>((resume) => {
          if (hasEnded(child)) {
            resume(Effect.dieMessage("the process has ended"))
            return
          }
          const id = ++last
          waiting.set(id, resume)
          child.send({ id, order })
        })
    }
  }).pipe(Effect.uninterruptible)

/** Each timer of exactly one second takes five, whatever it is for. */
const stretched =
  "const set = setTimeout; globalThis.setTimeout = (f, t, ...a) => set(f, t === 1000 ? 5000 : t, ...a)"

/** Variables that give the store of an example five seconds, because a busy machine may exceed the default of one. */
export const patient = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(stretched)}`
}

const packages = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Bundles programs for child processes with the sources of the packages, and returns their paths. A process loads a
 * bundle in a third of the time that the modules take. The files are removed with the scope.
 */
export const bundleAll = (
  programs: ReadonlyArray<URL>,
  folder = packages
): Effect.Effect<ReadonlyArray<string>, never, Scope.Scope> =>
  newFolder("bundle").pipe(
    Effect.tap((outdir) =>
      Effect.promise(() =>
        build({
          entryPoints: programs.map((program) => fileURLToPath(program)),
          outdir,
          outExtension: { ".js": ".mjs" },
          bundle: true,
          splitting: programs.length > 1,
          minify: true,
          platform: "node",
          format: "esm",
          logLevel: "warning",
          banner: {
            js:
              `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`
          },
          plugins: [{
            name: "sources",
            setup: (plugin) =>
              plugin.onResolve({ filter: /^@store-api\// }, ({ path }) => {
                const [, name = "", module = "index"] = path.split("/")
                return {
                  path: join(folder, name, name === "testing" ? "test" : "src", `${module}.ts`)
                }
              })
          }]
        })
      )
    ),
    Effect.map((outdir) =>
      programs.map(({ pathname }) =>
        join(outdir, `${basename(pathname, extname(pathname))}.mjs`)
      )
    )
  )

export const bundle = (program: URL): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(bundleAll([program]), ([path = ""]) => path)
