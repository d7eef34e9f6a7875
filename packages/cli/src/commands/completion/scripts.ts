/** Scripts of shells that ask this program for the words that may come next. */
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import { usageError } from "../../CommandError.js"
import * as output from "../../output.js"

/** If there is no word to offer, the shell completes file names. */
const scripts: Readonly<Record<string, string>> = {
  bash: `_store_api() {
  local IFS=$'\\n' current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(store-api __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
  [ "$current" = = ] || COMPREPLY=($(compgen -W "\${COMPREPLY[*]}" -- "$current"))
}
complete -o default -F _store_api store-api
`,
  zsh: `#compdef store-api
_store_api() {
  local -a found=(\${(f)"$(store-api __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  found=(\${\${found//:/\\\\:}/$'\\t'/:})
  if (( $#found )); then _describe store-api found; else _files; fi
}
compdef _store_api store-api
[[ \${zsh_eval_context[-1]} != loadautofunc ]] || _store_api
`,
  fish: `function __store_api
  set -l found (store-api __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  test -n "$found"; and printf '%s\\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c store-api -f -a '(__store_api)'
`
}

export const shells = Object.keys(scripts)

export const printScript = (shell: string) =>
  Option.match(Record.get(scripts, shell), {
    onNone: () => usageError(`The shell must be one of ${shells.join(", ")}.`),
    onSome: (script) => output.write("stdout", script)
  })
