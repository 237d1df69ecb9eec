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
      ? ['', 'Commands (to scan a file of such a name, write ./watch):', ...toTable(listCommands()), '', ...ending]
      : []),
    '',
  ].join('\n')
}

const listCommands = () =>
  commands
    .filter(({ name }) => name !== 'scan')
    .map(({ name, args, about }): [string, string] => [`${name} ${args}`.trimEnd(), about])

const ending = [
  'The exit code is 0 when all is clean, 1 when there is a threat, else 2 when there was an error.',
  'ASSAY_URL and ASSAY_API_KEY tell the service and the key; else those that login has stored.',
]

const toFlag = ({ name, short, value }: Option) =>
  `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`

function toTable(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
