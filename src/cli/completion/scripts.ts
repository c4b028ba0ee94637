import { type CliIo, EXIT } from '../io.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Prints a completion script for the shell. Each script asks `temper __complete` and lets the shell complete files. */
export function completionScript(shell: Shell, io: CliIo): number {
  io.out(SCRIPTS[shell]);
  return EXIT.ok;
}

/** Words come from the line itself, because bash splits its own at `:` and `=`. */
const BASH = `# source <(temper completion --shell bash)
_temper() {
  local line=\${COMP_LINE:0:COMP_POINT} last prefix directive
  local -a words lines
  read -a words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  last=\${words[\${#words[@]}-1]}
  local IFS=$'\\n'
  lines=($(temper __complete -- "\${words[@]:1}" 2>/dev/null))
  COMPREPLY=()
  [[ \${#lines[@]} -eq 0 ]] && return
  directive=\${lines[\${#lines[@]}-1]}
  case $directive in
    :0) type compopt &>/dev/null && compopt -o default; return ;;
    :16) type compopt &>/dev/null && compopt -o dirnames; return ;;
  esac
  prefix=\${last%"\${last##*[:=]}"}
  COMPREPLY=("\${lines[@]:0:\${#lines[@]}-1}")
  COMPREPLY=("\${COMPREPLY[@]#"$prefix"}")
}
complete -F _temper temper
`;

const ZSH = `#compdef temper
# source <(temper completion --shell zsh)
_temper() {
  local -a lines
  lines=("\${(@f)$(temper __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  case \${lines[-1]} in
    :0) _files ;;
    :16) _files -/ ;;
    *)
      local -a candidates
      candidates=("\${(@)lines[1,-2]}")
      compadd -a candidates
      ;;
  esac
}
if [[ \${funcstack[1]} == _temper ]]; then
  _temper "$@"
else
  compdef _temper temper
fi
`;

const FISH = `# temper completion --shell fish | source
function __temper_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines (temper __complete -- $words[2..-1] "$last" 2>/dev/null)
    if test (count $lines) -eq 0
        return
    end
    switch $lines[-1]
        case ':0'
            __fish_complete_path "$last"
        case ':16'
            __fish_complete_directories "$last"
        case '*'
            set -e lines[-1]
            if test (count $lines) -gt 0
                printf '%s\\n' $lines
            end
    end
end
complete -c temper -f -a '(__temper_complete)'
`;

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
