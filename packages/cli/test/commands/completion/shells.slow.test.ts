/** Each shell reads its completion script and completes words with it. */
import { execFile, spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, beforeAll, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { newUser, profilesOf, type User } from "../../support/cli.js"
import { bin, build } from "../../support/process.js"

beforeAll(build)

/** A line, and the completions that the shell offers for its last word. */
const offered: ReadonlyArray<readonly [line: string, words: ReadonlyArray<string>]> = [
  ["store-api tok", ["token"]],
  ["store-api profile r", ["remove"]],
  ["store-api call /orders --inc", ["--include"]],
  ["store-api status --profile b", ["blue", "books"]],
  ["store-api status --profile=bo", ["--profile=books"]],
  ["store-api --profile books che", ["check"]],
  ["store-api profile remove bl", ["blue"]],
  [
    "store-api emulator --scenario token/401-r",
    Scenario.names.filter((name) => name.startsWith("token/401-r"))
  ],
  ["store-api token --secret-file sec", ["secret.txt"]]
]

/** Replaces the functions that show candidates. */
const printing = `
  _describe() { print -rl -- \${(M)\${\${(P)2}%%:*}:#\${words[CURRENT]}*} }
  _files() { print -rl -- \${words[CURRENT]}*(N) }`

/** Completes the line in a shell that has read the script; prints a candidate per line. */
const drivers = {
  bash: {
    start: `source <(store-api completion bash)
      registered=$(complete -p store-api)
      [[ $registered =~ -F\\ ([^ ]+) ]] && function=\${BASH_REMATCH[1]}`,
    // As readline does it, for which = is a word.
    complete: (line: string) => `
      line=${JSON.stringify(line)}
      COMP_WORDS=(\${line//=/ = }); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=()
      $function
      if [ \${#COMPREPLY[@]} -gt 0 ]; then printf '%s\\n' "\${COMPREPLY[@]}"
      elif [[ $registered = *"-o default"* ]]; then compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"; fi`
  },
  zsh: {
    start: `autoload -Uz compinit && compinit -u -d "$HOME/.zcompdump"
      source <(store-api completion zsh)${printing}`,
    complete: (line: string) => `
      words=(${line}); CURRENT=\${#words}
      [[ $_comps[store-api] = _store_api ]] && _store_api`
  },
  "zsh, autoloaded": {
    start:
      `mkdir functions && store-api completion zsh > functions/_store-api && fpath=($PWD/functions $fpath)
      autoload -Uz compinit && compinit -u -d "$HOME/.zcompdump"${printing}`,
    complete: (line: string) => `
      words=(${line}); CURRENT=\${#words}
      $_comps[store-api]`
  },
  fish: {
    start: "store-api completion fish | source",
    complete: (line: string) => `complete --do-complete ${JSON.stringify(line)}`
  }
}

const install = (user: User): User => {
  const folder = join(user.cwd, "bin")
  mkdirSync(folder)
  writeFileSync(
    join(folder, "store-api"),
    `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`
  )
  chmodSync(join(folder, "store-api"), 0o755)
  mkdirSync(profilesOf(user), { recursive: true })
  for (const name of ["blue", "books"]) {
    writeFileSync(join(profilesOf(user), `${name}.env`), "")
  }
  writeFileSync(join(user.cwd, "secret.txt"), "")
  return { ...user, env: { ...user.env, PATH: `${folder}:${user.env["PATH"] ?? ""}` } }
}

for (const [name, driver] of Object.entries(drivers)) {
  const [shell = ""] = name.split(",")
  const isInstalled = spawnSync(shell, ["-c", "exit 0"]).status === 0 ||
    process.env["CI"] === "true"
  if (!isInstalled) {
    console.warn(`There is no ${shell}: the test of its completion is skipped.`)
  }
  describe.skipIf(!isInstalled)(`completion in ${name}`, () => {
    // An autoloaded function differs in its first call, which loads the script, and in its second.
    const lines = name === shell ? offered : offered.slice(0, 2)
    test.live("the completion of a shell offers what store-api knows, or else paths", function*() {
      const { cwd, env } = install(yield* newUser({}))
      const separator = "----"
      const script = [driver.start, ...lines.map(([line]) => driver.complete(line))].join(
        `\necho ${separator}\n`
      )
      const run = promisify(execFile)(shell, ["-c", script], { cwd, env })
      const [, ...texts] = (yield* Effect.promise(() => run)).stdout.split(`${separator}\n`)
      assert.lengthOf(texts, lines.length)
      for (const [index, [line, words]] of lines.entries()) {
        const found = (texts[index] ?? "").split("\n").map((word) => word.replace(/\t.*/, ""))
          .filter(Boolean).sort()
        // In bash the words before and after a = are completed apart.
        const expected = shell === "bash"
          ? words.map((word) => word.replace(/^--profile=/, ""))
          : [...words]
        deepStrictEqual(found, expected.sort(), line)
      }
    })
  })
}
