import { type Command, commands, help, type Option, type shells, version } from './commands.ts'

export type Shell = (typeof shells)[number]

/** A completion script, to load with `source <(assay-scan completion bash)` or the like. */
export const toCompletion = (shell: Shell): string => ({ bash: toBash, zsh: toZsh, fish: toFish })[shell]()

const listOptions = ({ name, options }: Command): Option[] => [...options, help, ...(name === 'scan' ? [version] : [])]

const subcommands = commands.filter(({ name }) => name !== 'scan')

function toBash(): string {
  const cases = commands.map((command) => {
    const options = listOptions(command).map(({ name }) => `--${name}`)
    const words = Array.isArray(command.completes) ? command.completes.join(' ') : ''
    return `    ${command.name}) options='${options.join(' ')}'; words='${words}'; kind='${toKind(command.completes)}' ;;`
  })
  const uniqueOptions = [
    ...new Map(commands.flatMap(({ options }) => options).map((option) => [option.name, option])).values(),
  ]
  const values = uniqueOptions
    .filter(({ value }) => value !== undefined)
    .map(({ name, completes }) => `    --${name}) ${completes ? `_assay_scan_paths ${completes}` : ':'}; return ;;`)
  return `# bash completion for assay-scan
_assay_scan_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  if [ "$1" = directory ]; then COMPREPLY=($(compgen -d -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}
_assay_scan() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=scan options words kind
  COMPREPLY=()
  case "\${COMP_WORDS[1]}" in
    ${subcommands.map(({ name }) => name).join('|')}) [ "$COMP_CWORD" -gt 1 ] && command=\${COMP_WORDS[1]} ;;
  esac
  case "$before" in
${values.join('\n')}
  esac
  case "$command" in
${cases.join('\n')}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word")); return; fi
  case "$kind" in file|directory) _assay_scan_paths "$kind" ;; esac
  if [ "$COMP_CWORD" -eq 1 ]; then words='${subcommands.map(({ name }) => name).join(' ')}'; fi
  if [ -n "$words" ]; then COMPREPLY+=($(compgen -W "$words" -- "$word")); fi
}
complete -F _assay_scan assay-scan
`
}

function toZsh(): string {
  const escapeZsh = (text: string) => text.replaceAll("'", "'\\''").replaceAll(/[[\]:]/g, '\\$&')
  const spec = ({ name, short, value, about, completes }: Option) => {
    const ending = value === undefined ? '' : `:${escapeZsh(value)}:${completes ? toZshAction(completes) : ' '}`
    const text = `[${escapeZsh(about)}]${ending}`
    return short === undefined ? [`'--${name}${text}'`] : [`'--${name}${text}'`, `'-${short}${text}'`]
  }
  const cases = commands.map((command) => {
    const lines = [...listOptions(command).flatMap(spec), `'*:argument:${toZshAction(command.completes)}'`]
    return `    ${command.name}) _arguments -s ${lines.join(' \\\n      ')} ;;`
  })
  return `#compdef assay-scan
_assay_scan() {
  local command=scan
  local -a commands=(
${subcommands.map(({ name, about }) => `    '${name}:${escapeZsh(about)}'`).join('\n')}
  )
  case "\${words[2]}" in
    ${subcommands.map(({ name }) => name).join('|')}) if (( CURRENT > 2 )); then command=\${words[2]}; shift words; (( CURRENT-- )); fi ;;
  esac
  if (( CURRENT == 2 )) && [[ $command == scan && \${words[2]} != -* ]]; then _describe command commands; fi
  case "$command" in
${cases.join('\n')}
  esac
}
compdef _assay_scan assay-scan
`
}

function toFish(): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const names = subcommands.map(({ name }) => name).join(' ')
  const lines = commands.flatMap((command) => {
    const isScan = command.name === 'scan'
    const condition = quote(
      isScan ? `not __fish_seen_subcommand_from ${names}` : `__fish_seen_subcommand_from ${command.name}`,
    )
    const options = listOptions(command).map(({ name, short, value, about, completes }) => {
      const flags = `-l ${name}${short === undefined ? '' : ` -s ${short}`}${value === undefined ? '' : ` -r${completes ? ' -F' : ' -f'}`}`
      return `complete -c assay-scan -n ${condition} ${flags} -d ${quote(about)}`
    })
    const subcommand = isScan
      ? []
      : [`complete -c assay-scan -n __fish_use_subcommand -a ${command.name} -d ${quote(command.about)}`]
    const args =
      isScan || typeof command.completes === 'string'
        ? []
        : [`complete -c assay-scan -n ${condition} -f -a ${quote(command.completes.join(' '))}`]
    return [...subcommand, ...options, ...args]
  })
  return `# fish completion for assay-scan\n${lines.join('\n')}\n`
}

const toKind = (completes: Command['completes']) => (typeof completes === 'string' ? completes : '')

const toZshAction = (completes: Command['completes']) =>
  completes === 'file' ? '_files' : completes === 'directory' ? '_files -/' : `(${completes.join(' ')})`
