import { parseArgs } from 'node:util'
import { UserError } from '../user-errors.ts'
import { type Command, type CommandName, commands, help, type Option, version } from './commands.ts'

export type Parsed = {
  command: Command
  args: string[]
  has(name: string): boolean
  findText(name: string): string | undefined
  /** Throws a UserError if the value is not a number within the bounds. */
  findNumber(name: string, bounds: { min: number; max: number; isWhole: boolean }): number | undefined
}

/** The first argument selects the command; if it is not a command, all arguments are targets of a scan. */
export function parse(argv: string[]): Parsed {
  const namedCommand = commands.find(({ name }) => name === argv[0])
  const command = namedCommand ?? getCommand('scan')
  const { values, positionals } = read(command, namedCommand === undefined ? argv : argv.slice(1))
  const findText = (name: string) => {
    const value = values[name]
    return typeof value === 'string' ? value : undefined
  }
  return {
    command,
    args: positionals,
    has: (name) => values[name] === true,
    findText,
    findNumber(name, { min, max, isWhole }) {
      const text = findText(name)
      if (text === undefined) return undefined
      const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
      if (number >= min && number <= max && (!isWhole || Number.isInteger(number))) return number
      throw new UserError(
        `--${name} must be a ${isWhole ? 'whole number' : 'number'} from ${min} to ${max}, not ${text}.`,
      )
    },
  }
}

function getCommand(name: CommandName): Command {
  const command = commands.find((each) => each.name === name)
  if (command === undefined) throw new Error(`Unknown command ${name}`)
  return command
}

type ParsedArguments = { values: Record<string, unknown>; positionals: string[] }

function read(command: Command, args: string[]): ParsedArguments {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: Object.fromEntries([...command.options, help, version].map(toConfig)),
    })
  } catch (error) {
    if (!(error instanceof TypeError) || !('code' in error) || !String(error.code).startsWith('ERR_PARSE_ARGS'))
      throw error
    const sentence = error.message.split(/\. |\n/)[0] ?? ''
    throw new UserError(
      `${sentence.replace(/\.$/, '')}. See assay-scan ${command.name === 'scan' ? '' : `${command.name} `}--help.`,
    )
  }
}

const toConfig = ({ name, short, value }: Option) => [
  name,
  { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short !== undefined && { short }) },
]
