/** Makes the completion scripts of bash, zsh and fish from the tree of commands. They have plain words and files, and run no program. */
import type { CommandNode, OptionNode, Tree, Values } from './tree.js'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export function scriptOf(shell: Shell, tree: Tree): string {
  return SCRIPTS[shell](tree)
}

const SCRIPTS: Readonly<Record<Shell, (tree: Tree) => string>> = { bash, zsh, fish }

const flagsOf = (options: readonly OptionNode[]): readonly string[] => options.flatMap(({ flags }) => flags)

function bash({ name, options, commands }: Tree): string {
  const words = (list: readonly string[]): string => `COMPREPLY=($(compgen -W '${list.join(' ')}' -- "$cur"))`
  const complete = (values: Values): string => {
    if (values.kind === 'choices') return words(values.choices)
    return values.kind === 'file' ? 'compopt -o default 2>/dev/null; COMPREPLY=()' : 'COMPREPLY=()'
  }
  const ofOption = (node: CommandNode): readonly string[] =>
    node.options
      .filter(({ values }) => values !== null)
      .map(({ flags, values }) => `    ${flags.map((flag) => `${node.name}:${flag}`).join('|')}) ${complete(values!)}; return ;;`)
  const ofCommand = (node: CommandNode): string =>
    `    ${node.name}) case "$cur" in
      -*) ${words(flagsOf(node.options))} ;;
      *) ${node.argument === null ? 'COMPREPLY=()' : complete(node.argument)} ;;
    esac ;;`
  return `# bash completion of ${name}
_${name}_words() {
  local i
  command=''
  for ((i = 1; i < \${#words[@]} - 1; i++)); do
    case "\${words[i]}" in
      --) compopt -o default 2>/dev/null; COMPREPLY=(); return ;;
      -*) ;;
      *) [ -n "$command" ] || command="\${words[i]}" ;;
    esac
  done
  if [ -z "$command" ]; then
    ${words([...commands.map((node) => node.name), ...flagsOf(options)])}
    return
  fi
  case "$command:$prev" in
${commands.flatMap(ofOption).join('\n')}
  esac
  case "$command" in
${commands.map(ofCommand).join('\n')}
  esac
}
_${name}() {
  local words cur prev command line="\${COMP_LINE:0:COMP_POINT}"
  # Not COMP_WORDS: bash takes a colon for the end of a word.
  read -ra words <<< "$line"
  case "$line" in *[[:space:]]) words+=('') ;; esac
  cur="\${words[\${#words[@]}-1]}"
  prev="\${words[\${#words[@]}-2]}"
  _${name}_words
  if [[ "$cur" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    COMPREPLY=("\${COMPREPLY[@]#"\${cur%"\${cur##*:}"}"}")
  fi
}
complete -F _${name} ${name}
`
}

function zsh({ name, options, commands }: Tree): string {
  // Brackets and colons end a description there.
  const text = (description: string): string =>
    description.replaceAll(/['’[\]:\\]/g, (char) => (char === "'" || char === '’' ? '’' : `\\${char}`))
  const action = (values: Values): string => {
    if (values.kind === 'choices') return `:value:(${values.choices.join(' ')})`
    return values.kind === 'file' ? ':file:_files' : ':value: '
  }
  const spec = ({ flags, description, values }: OptionNode): readonly string[] => {
    const exclusive = `(${flags.join(' ')})`
    return flags.map((flag) => `'${exclusive}${flag}[${text(description)}]${values === null ? '' : action(values)}'`)
  }
  const ofCommand = (node: CommandNode): string => {
    const specs = [...node.options.flatMap(spec), ...(node.argument === null ? [] : [`'1${action(node.argument)}'`, "'*::args:_files'"])]
    return `    ${node.name})
      _arguments \\
        ${specs.join(' \\\n        ')}
      ;;`
  }
  return `#compdef ${name}
_${name}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
    ${[...options.flatMap(spec), "'1:command:->command'", "'*::arguments:->arguments'"].join(' \\\n    ')}
  case "$state" in
  command)
    local -a commands
    commands=(
      ${commands.map((node) => `'${node.name}:${text(node.description)}'`).join('\n      ')}
    )
    _describe command commands
    ;;
  arguments)
    case "$line[1]" in
${commands.map(ofCommand).join('\n')}
    esac
    ;;
  esac
}
if [ "$funcstack[1]" = _${name} ]; then _${name} "$@"; else compdef _${name} ${name}; fi
`
}

function fish({ name, options, commands }: Tree): string {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const names = commands.map((node) => node.name).join(' ')
  const behind = (values: Values | null): string => {
    if (values === null) return ''
    if (values.kind === 'choices') return ` -x -a ${quote(values.choices.join(' '))}`
    return values.kind === 'file' ? ' -r -F' : ' -x'
  }
  const ofOption = (condition: string, { flags, description, values }: OptionNode): string => {
    const words = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
    return `complete -c ${name} -n ${quote(condition)} ${words.join(' ')}${behind(values)} -d ${quote(description)}`
  }
  const ofCommand = (node: CommandNode): readonly string[] => {
    const condition = `__fish_seen_subcommand_from ${node.name}`
    const argument =
      node.argument === null || node.argument.kind === 'other'
        ? []
        : [
            `complete -c ${name} -n ${quote(condition)}${node.argument.kind === 'file' ? ' -F' : ` -f -a ${quote(node.argument.choices.join(' '))}`}`,
          ]
    return [...node.options.map((option) => ofOption(condition, option)), ...argument]
  }
  const first = `not __fish_seen_subcommand_from ${names}`
  return `# fish completion of ${name}
complete -c ${name} -f
${[
  ...options.map((option) => ofOption(first, option)),
  ...commands.map((node) => `complete -c ${name} -n ${quote(first)} -f -a ${node.name} -d ${quote(node.description)}`),
  ...commands.flatMap(ofCommand),
].join('\n')}
`
}
