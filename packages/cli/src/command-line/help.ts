import { type Command, commands, help, type Option, version } from './commands.ts'

export function toHelp(command: Command): string {
  const isMain = command.name === 'scan'
  const name = isMain ? 'assay-scan' : `assay-scan ${command.name}`
  const usage = [name, ...(command.options.length > 0 ? ['[options]'] : []), command.args].join(' ').trimEnd()
  const options = [...command.options, help, ...(isMain ? [version] : [])]
  return [
    `Usage: ${usage}`,
    '',
    command.about,
    '',
    'Options:',
    ...toTable(options.map((option) => [toFlag(option), option.about])),
    ...(isMain
      ? [
          '',
          'Commands (to scan a file with the name of a command, prefix it with ./):',
          ...toTable(listCommands()),
          '',
          ...footer,
        ]
      : []),
    '',
  ].join('\n')
}

const listCommands = () =>
  commands
    .filter(({ name }) => name !== 'scan')
    .map(({ name, args, about }): [string, string] => [`${name} ${args}`.trimEnd(), about])

const footer = [
  'Exit codes: 0 all files are clean, 1 a threat was found, 2 an error occurred and no threat was found.',
  'ASSAY_URL and ASSAY_API_KEY take precedence over the address and key that login stored.',
]

const toFlag = ({ name, short, value }: Option) =>
  `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`

function toTable(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
